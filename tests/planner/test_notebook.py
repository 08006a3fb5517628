"""Plans in notebooks: blocks as wide as the predicted times, coloured by kind, escaped, and not too many."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit.library import UnitaryGate

from qsim_ozaki import OzakiBackend
from qsim_ozaki.ir import (
    DenseBlock,
    HadamardPass,
    Kind,
    Op,
    OpList,
    Path,
    Prediction,
    Prepare,
    Relabel,
    Stack,
    TilePass,
)
from qsim_ozaki.planner.notebook import COLORS, MAX_BLOCKS, kind_of, timeline_html


class Page(HTMLParser):
    """Blocks of all strips, and whether every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.blocks, self.places = set(), [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag == "br":
            return
        self.open.append(tag)
        attributes = dict(attributes)
        assert set(attributes) <= {"style", "title"}
        style = attributes.get("style", "")
        if "title" in attributes:
            width, color = re.match(r"width:([\d.]+)%;background:(#\w+);", style).groups()
            self.blocks.append((float(width), color, attributes["title"]))
        elif "display:flex" in style:
            self.places.append(tuple(map(float, re.search(r" ([\d.]+)%;width:([\d.]+)%", style).groups())))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def tile(seconds, name="x"):
    op = Op(Kind.UNITARY, (0,), np.eye(2, dtype=complex)[::-1], name=name)
    return TilePass((0, 1), OpList.of([op]), prediction=Prediction(seconds, bound_by="memory"), reason="why <not>")


def every_kind():
    op = Op(Kind.UNITARY, (0, 1, 2), np.eye(8, dtype=complex)[::-1], name="big")
    return [
        Prepare(np.eye(3, 2, dtype=complex), Prediction(0.5)),
        Relabel((1, 0, 2), Prediction(0.25)),
        tile(2.0),
        HadamardPass((0, 1), Prediction(1.0)),
        DenseBlock(op, prediction=Prediction(3.0)),
        DenseBlock(op, Path.OZAKI, 15, prediction=Prediction(4.0)),
        Stack((0, 1, 2), OpList.of([op]), Prediction(1.5)),
    ]


def test_blocks_are_as_wide_as_their_share_of_the_time_and_have_the_colours_of_their_kinds():
    steps = every_kind()
    page = Page(timeline_html(steps))
    seconds = np.array([step.prediction.seconds for step in steps])
    np.testing.assert_allclose([width for width, _, _ in page.blocks], 100 * seconds / seconds.sum(), atol=1e-4)
    assert [color for _, color, _ in page.blocks] == [COLORS[kind_of(step)] for step in steps]
    assert len(set(COLORS.values())) == len(COLORS) == len(steps)
    assert {kind_of(step) for step in steps} == COLORS.keys()
    assert page.places == [(0, 100)]
    assert page.blocks[5][2].startswith("step 6: DenseBlock k=3; qubits 0-2; ozaki (15 moduli); 4 s, bound by launch")


def test_steps_without_time_have_no_block_and_keep_the_numbers_of_the_others():
    page = Page(timeline_html([tile(0.0), tile(1.0), tile(0.0), tile(3.0)]))
    assert [title.partition(":")[0] for _, _, title in page.blocks] == ["step 2", "step 4"]
    assert [width for width, _, _ in page.blocks] == [25, 75]
    assert timeline_html([tile(0.0)]) == timeline_html([]) == ""


def test_the_legend_sums_the_time_of_each_kind():
    legend = timeline_html([tile(1.0), HadamardPass((0,), Prediction(5.0)), tile(3.0)]).partition("</div></div>")[2]
    assert re.findall(r"</span>([^<&]+)", legend) == ["Hadamards 5 s ", "tile pass 4 s"]


@pytest.mark.parametrize("count", [MAX_BLOCKS, MAX_BLOCKS + 1, 10007])
def test_neighbours_of_very_many_steps_share_a_block(rng, count):
    seconds = rng.random(count)
    text = timeline_html([tile(value) for value in seconds])
    page = Page(text)
    assert len(text) < 80_000
    assert len(page.blocks) <= MAX_BLOCKS
    size = -(-count // MAX_BLOCKS)
    sums = np.add.reduceat(seconds, np.arange(0, count, size))
    np.testing.assert_allclose([width for width, _, _ in page.blocks], 100 * sums / seconds.sum(), atol=1e-4)
    assert sum(width for width, _, _ in page.blocks) == pytest.approx(100, abs=0.02)
    if size > 1:
        assert page.blocks[0][2].startswith(f"steps 1-{size}: {size} tile pass; ")


def test_a_shared_block_has_the_colour_of_the_kind_that_takes_most_of_its_time():
    steps = [tile(1.0), HadamardPass((0,), Prediction(3.0))] * MAX_BLOCKS
    page = Page(timeline_html(steps))
    assert {color for _, color, _ in page.blocks} == {COLORS["Hadamards"]}
    assert page.blocks[1][2] == "steps 3-4: 1 tile pass, 1 Hadamards; 4 s"


def test_names_and_reasons_are_escaped():
    name = "<script>alert('x')</script>\"&"
    text = timeline_html([tile(1.0, name)])
    assert "<script" not in text
    assert "why <not>" not in text
    page = Page(text)
    assert page.tags == {"div", "span"}
    assert f"1 {name}" in page.blocks[0][2]
    assert page.blocks[0][2].endswith("why <not>")
    circuit = QuantumCircuit(15)
    circuit.h(range(15))
    circuit.append(UnitaryGate(np.eye(4)[[1, 0, 3, 2]], label=name), [0, 1])
    page = Page(OzakiBackend().plan(circuit)._repr_html_())
    assert page.tags == {"div", "span", "table", "thead", "tbody", "tr", "th", "td", "p", "br"}


def test_the_parts_of_a_program_follow_each_other_on_one_scale():
    circuit = QuantumCircuit(15)
    for _ in range(3):
        circuit.h(range(15))
        circuit.ccx(0, 7, 14)
        circuit.reset(3)
    circuit.h(3)
    plan = OzakiBackend().plan(circuit, shots=1)
    page = Page(plan._repr_html_())
    times = [part.prediction.seconds for part in plan.plans if part.prediction.seconds]
    starts = np.cumsum([0, *times[:-1]])
    assert len(times) > 2
    np.testing.assert_allclose(page.places, 100 * np.column_stack([starts, times]) / sum(times), atol=1e-3)


def test_a_page_of_very_many_parts_and_steps_stays_small():
    circuit = QuantumCircuit(14)
    for index in range(1000):
        circuit.h(index % 14)
        circuit.reset(index % 14)
    plan = OzakiBackend().plan(circuit, shots=1)
    assert len(plan.plans) >= 999
    page = plan._repr_html_()
    assert page.count("<h4>") == 200
    assert len(page) < 400_000
    assert f"<p>{len(plan.plans) - page.count('<h4>')} more parts" in page
