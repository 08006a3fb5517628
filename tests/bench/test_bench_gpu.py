"""The GPU benchmark on a GPU that is none: rows, checks, what cuStateVec is given. No time is judged."""

import json
import re

import numpy as np
import pytest
from support import fake_gpu, reference
from support.random_ops import SMALL_KINDS, random_op, random_unitary

from qsim_ozaki.bench import CudaBenchOptions, measure_gpu
from qsim_ozaki.bench import report as bench_report
from qsim_ozaki.bench.gpu.custatevec import FORMS, FUSIONS, ExState, Library, Updater, gates
from qsim_ozaki.bench.gpu.row import Group, RowStates, RowTimer, RowWork, lowered
from qsim_ozaki.bench.gpu.runner import BLOCKS, FAMILIES, CudaBench, groups
from qsim_ozaki.bench.gpu.state import distance
from qsim_ozaki.bench.record import OURS
from qsim_ozaki.circuits import FAMILIES as CIRCUITS
from qsim_ozaki.cli import app
from qsim_ozaki.engines import fill
from qsim_ozaki.errors import OptionError
from qsim_ozaki.ir import DenseBlock, HadamardPass, Kind, Op, OpList, Path, Prepare
from qsim_ozaki.planner import PlanOptions, plan


def few(**fields):
    """Options of a small run."""
    values = {"families": ("hadamard", "qft", BLOCKS), "qubits": (9,), "precisions": ("double",), "repeats": 2}
    return CudaBenchOptions(**(values | fields))


def entry(report, family, simulator=OURS):
    """The entry of ``simulator`` in the row called ``family``."""
    (row,) = (row for row in report.rows if row.family == family)
    return next(timing for timing in row.timings if timing.simulator == simulator)


@pytest.fixture(scope="module")
def found():
    """A run with a peer; and the reports so far."""
    with pytest.MonkeyPatch.context() as patch:
        fake_gpu.install(patch, ex=fake_gpu.Ex())
        seen = []
        return measure_gpu(few(precisions=("double", "single")), seen.append), seen


def test_every_row_has_both_sides_and_their_distance(found):
    report, seen = found
    circuits = ["hadamard", "hadamard from zero", "qft"]
    blocks = [f"block {k} {where}" for k in range(5, 10) for where in ("low", "high", "spread")]
    names = [row.family for row in report.rows if not row.family.endswith("auto")]
    assert names == [*circuits, *blocks, *circuits, *blocks]
    assert [len(each.rows) for each in seen] == list(range(1, len(report.rows) + 1))
    for row in report.rows:
        ours, theirs = row.timings
        assert (ours.simulator, theirs.simulator) == (OURS, "custatevec")
        assert len(ours.seconds) == len(theirs.seconds) == 2
        assert ours.error is not None, row.family
        assert ours.error < (1e-13 if ours.precision == "double" else 1e-5), row.family
        assert ours.gpu.pass_seconds == theirs.gpu.pass_seconds > 0
        assert ours.passes == pytest.approx(ours.median / ours.gpu.pass_seconds)
        assert ours.gpu.first_run_seconds > 0
        assert len(ours.model.steps) > 0
    swaps = 4
    assert [row.num_gates for row in report.rows[:4]] == [9, 9, len(lowered("qft", 9, 7)) - swaps, 1]
    assert report.versions["custatevec"] == "1.15.0"
    assert not report.disagreements
    assert not report.failures


def test_a_block_that_is_emulated_too_has_two_rows(monkeypatch):
    engine = fake_gpu.install(monkeypatch, ex=fake_gpu.Ex())
    op = Op(Kind.UNITARY, (7, 0, 3), random_unitary(np.random.default_rng(1), 8))
    plans = {"native": PlanOptions(), "auto": PlanOptions(arithmetic="emulated")}
    plans = {name: plan([op], 9, engine.device(), options) for name, options in plans.items()}
    work = RowWork("block 3 spread", OpList.of([op]), plans, first_seconds=dict.fromkeys(plans, 1.0))
    group = Group(True, 9, "double")
    both = engine.allocate(9, "double"), engine.allocate(9, "double")
    states = RowStates(group, both[0], peer_block=both[1], pass_seconds=1.0)
    rows = RowTimer(engine, Library(), 2, 7).block_rows(work, states)
    assert [row.family for row in rows] == ["block 3 spread", "block 3 spread auto"]
    assert [row.timings[0].variant for row in rows] == ["native", "auto"]
    assert rows[0].timings[1] == rows[1].timings[1]
    assert all(row.timings[0].error < 1e-13 for row in rows)
    assert rows[0].timings[0].error != rows[1].timings[0].error


def test_auto_is_timed_where_it_emulates(monkeypatch):
    fake_gpu.install(monkeypatch, ex=fake_gpu.Ex())
    bench = CudaBench(few())
    group = Group(True, 28, "double")
    for title in ("block 5 low", "block 10 spread"):
        work = bench.block_work(group, title)
        by_itself = plan(work.ops, 28, bench.device, PlanOptions()).steps
        emulates = any(isinstance(step, DenseBlock) and step.path is Path.OZAKI for step in by_itself)
        assert list(work.plans) == (["native", "auto"] if emulates else ["native"])


def test_the_peer_has_every_form_and_fusion_tried():
    with pytest.MonkeyPatch.context() as patch:
        ex = fake_gpu.Ex()
        fake_gpu.install(patch, ex=ex)
        report = measure_gpu(few(families=("qft",), qubits=(6,)))
    assert ex.fusions[: len(FORMS) * len(FUSIONS)] == len(FORMS) * list(FUSIONS)
    variant = entry(report, "qft", "custatevec").variant
    assert re.fullmatch(r"fusion (default|4|5|6), (structured|matrices)", variant)
    assert all(thing.ops is None for thing in ex.things.values() if hasattr(thing, "ops"))
    assert all(thing.amps is None for thing in ex.things.values() if hasattr(thing, "amps"))


def test_a_wrong_state_is_a_disagreement_and_exit_code_2(capsys, monkeypatch, tmp_path):
    fake_gpu.install(monkeypatch, ex=fake_gpu.Ex(wrong=-1.0))
    families = ("--family=qft", "--family=blocks")
    with pytest.raises(SystemExit) as stop:
        app.main(["bench", "--engine=cuda", *families, "--qubits=6", f"--json={tmp_path / 'out'}"])
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert "WRONG" in out
    assert "qft 6: double" in err
    written = json.loads((tmp_path / "out").read_text())
    assert [row["timings"][0]["error"] for row in written["rows"]] == pytest.approx([2] * len(written["rows"]))


def test_without_the_library_ours_stands_alone(monkeypatch):
    fake_gpu.install(monkeypatch)
    report = measure_gpu(few())
    for row in report.rows:
        ours, theirs = row.timings
        assert ours.seconds
        assert ours.error is None
        assert not theirs.seconds
        assert theirs.note.startswith("custatevec is not here: ModuleNotFoundError")
    assert "custatevec" not in report.versions
    (line,) = bench_report.notes(report)
    assert re.match(r"hadamard 9 and \d+ more: custatevec \(double\): custatevec is not here", line)


def test_what_does_not_fit_says_how_much_it_needs(monkeypatch):
    state = 16 << 9
    fake_gpu.install(monkeypatch, fake_gpu.Engine(free_bytes=2 * state + state // 2), fake_gpu.Ex())
    alone = measure_gpu(few(families=("qft",)))
    assert entry(alone, "qft").seconds
    assert re.search(r"its state and ours need 1.53e-05 GiB; NVIDIA H200 has", entry(alone, "qft", "custatevec").note)
    fake_gpu.install(monkeypatch, fake_gpu.Engine(free_bytes=state), fake_gpu.Ex())
    (row,) = measure_gpu(few(families=("qft",))).rows
    assert row.timings[0].note == "left out: a state needs 7.63e-06 GiB; NVIDIA H200 has 0 GiB for it"


def test_wide_circuits_are_run_from_zero_too(monkeypatch):
    """As users run them: the planner knows where the state is 0."""
    fake_gpu.install(monkeypatch, ex=fake_gpu.Ex())
    monkeypatch.setattr("qsim_ozaki.bench.gpu.runner.FROM_ZERO_QUBITS", 9)
    report = measure_gpu(few(families=("qft", "trotter_ising"), qubits=(9, 8)))
    names = [(row.family, row.num_qubits) for row in report.rows]
    wide = ("qft", "qft from zero", "trotter_ising", "trotter_ising from zero")
    assert names == [*((name, 9) for name in wide), ("qft", 8), ("trotter_ising", 8)]
    assert all(row.timings[0].error < 1e-13 for row in report.rows)


def test_time_that_is_over_leaves_rows_out(monkeypatch):
    fake_gpu.install(monkeypatch, ex=fake_gpu.Ex())
    clock = iter([0.0, *[1.0] * 6, *[100.0] * 1000])
    monkeypatch.setattr("qsim_ozaki.bench.gpu.runner.time.monotonic", lambda: next(clock))
    report = measure_gpu(few(families=("hadamard", "qft"), qubits=(5, 6), seconds=50))
    timed = [(row.family, row.num_qubits) for row in report.rows if row.timings[0].seconds]
    assert timed == [("hadamard", 5), ("hadamard from zero", 5)]
    assert len(report.rows) == 6
    assert report.rows[-1].timings[0].note == "left out: the 50 s were over"
    assert report.command.endswith("--qubits 5 --qubits 6 --precision double --repeats 2 --seconds 50")


def test_a_row_that_fails_does_not_lose_the_others(monkeypatch):
    engine = fake_gpu.install(monkeypatch, ex=fake_gpu.Ex())
    engine.failing = Prepare
    report = measure_gpu(few(families=("hadamard",)))
    assert [row.family for row in report.failures] == ["hadamard from zero"]
    assert entry(report, "hadamard from zero").note == "failed: EngineError: it was to fail"
    assert entry(report, "hadamard").seconds
    engine.failing = HadamardPass
    assert [row.family for row in measure_gpu(few(families=("hadamard",))).failures] == ["hadamard"]


def test_an_interrupt_keeps_the_rows_so_far(monkeypatch):
    fake_gpu.install(monkeypatch, ex=fake_gpu.Ex())

    def stop(report):
        if len(report.rows) == 2:
            raise KeyboardInterrupt

    assert len(measure_gpu(few(), stop).rows) == 2


def test_tables_have_the_columns_of_a_gpu(found, tmp_path):
    report, _ = found
    header, rows = bench_report.model_header(report), bench_report.model_rows(report)
    assert header[-4:] == ("measured", "other's", "host", "first run, ms")
    assert all(len(row) == len(header) for row in rows)
    assert re.fullmatch(r"[\d.]+", rows[0][-4])
    assert bench_report.report_caption(report).startswith("NVIDIA H200, ")
    assert "cores" not in bench_report.report_caption(report)
    text = bench_report.report_markdown(report)
    assert text.startswith("# State-vector simulators on a GPU")
    assert text.count("| block 7 spread | 9 |") == 5  # two summaries, two models, one of every simulator
    file = tmp_path / "out.json"
    bench_report.write_report(report, str(file), None, None)
    assert bench_report.read_report(str(file)) == report


def test_the_order_is_that_of_importance():
    names = [(g.blocks, g.num_qubits, g.precision) for g in groups(CudaBenchOptions())]
    assert names[:4] == [(False, 30, "double"), (True, 28, "double"), (False, 30, "single"), (False, 10, "double")]
    assert len(names) == len(set(names)) == 2 * (6 + 1)
    assert {n for blocks, n, _ in names if not blocks} == {30, 28, 20, 16, 12, 10}
    assert groups(few(families=(BLOCKS,), qubits=(12, 14))) == [Group(True, 14, "double")]
    assert set(FAMILIES) - {BLOCKS} <= CIRCUITS.keys()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (few(families=("nope",)), "family 'nope' is not known; there are .*blocks"),
        (few(precisions=("half",)), "precision 'half' is not known"),
        (few(qubits=(9, 2)), "2 qubits were asked for; a GPU's benchmark takes [45] and more"),
        (few(families=("dense8",), qubits=(7,)), "dense8 needs at least 8 qubits, not 7"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(OptionError, match=message):
        measure_gpu(options)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--engine=cuda"], 'engine "cuda" '),
        (["--engine=tpu"], "engine 'tpu' is not known; there are cpu, cuda"),
        (["--engine=cuda", "--peer=aer"], "--peer was given, which --engine cuda does not have"),
        (["--engine=cuda", "--threads=2"], "--threads was given"),
        (["--seconds=9"], "--seconds was given, which --engine cpu does not have"),
    ],
)
def test_command_lines_that_cannot_run_say_why(capsys, monkeypatch, words, message):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(SystemExit) as stop:
        app.main(["bench", *words])
    assert stop.value.code == 1
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert error.count("\n") == 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(6))
def test_gates_are_the_operators(monkeypatch, form, seed):
    rng = np.random.default_rng(seed)
    ops = [random_op(rng, 6, max_targets=3, kinds=SMALL_KINDS) for _ in range(12)]
    ops.append(Op(Kind.DIAGONAL, (), np.array([1j])))
    fake_gpu.install(monkeypatch, ex=fake_gpu.Ex())
    library, cupy = Library(), fake_gpu.Cupy()
    state = ExState(library, cupy, 6, "double")
    fill(cupy, state.amps, 3)
    want = reference.apply_ops(state.amps.copy(), ops)
    Updater(library, gates(ops, form), "double", 4).apply(state)
    place = [int(wire) for wire in state.wires]
    assert place == [5, 4, 3, 2, 1, 0]  # the fake turns them round
    assert distance(cupy, want, state.amps, place) < 1e-14
    assert distance(cupy, want, state.amps, range(6)) > 0.1
    if form == "matrices":
        assert {gate.kind for gate in gates(ops, form)} == {"DENSE"}


def test_a_phase_alone_is_a_gate_and_x_is_antidiagonal():
    (gate,) = gates([Op(Kind.DIAGONAL, (), np.array([1j]))], "structured")
    assert (gate.kind, gate.targets, gate.data.tolist()) == ("DIAGONAL", (0,), [1j, 1j])
    flip = Op(Kind.PERMUTATION, (2,), np.ones(2, complex), (0,), 1, np.array([1, 0]))
    (gate,) = gates([flip], "structured")
    assert (gate.kind, gate.controls, gate.values) == ("ANTI_DIAGONAL", (0,), (1,))
    both = gates([flip, Op(Kind.DIAGONAL, (), np.array([1j]))], "structured")
    assert len(both) == 2  # a phase does not ride in a gate with controls


def test_random_states_are_the_same_for_a_seed_and_of_norm_one(monkeypatch):
    for module in ("bench.gpu.state", "engines.probes"):
        monkeypatch.setattr(f"qsim_ozaki.{module}.PART_QUBITS", 8)
    cupy, made = fake_gpu.Cupy(), []
    for kind, seed in ((np.complex128, 1), (np.complex128, 1), (np.complex128, 2), (np.complex64, 1)):
        made.append(np.empty(1 << 12, kind))
        fill(cupy, made[-1], seed)
    assert np.array_equal(made[0], made[1])
    assert abs(np.vdot(made[0], made[2])) < 0.1
    assert [np.linalg.norm(each) for each in made] == pytest.approx([1] * 4, rel=0.05)
    assert abs(np.vdot(made[0][:256], made[0][256:512])) < 0.01  # parts differ
    place = [int(q) for q in np.random.default_rng(0).permutation(12)]
    moved = made[0].reshape((2,) * 12).transpose([11 - place[11 - axis] for axis in range(12)]).reshape(-1)
    assert distance(cupy, made[0], moved, place) == 0
    assert distance(cupy, made[0], made[0] * 1.5, range(12)) == pytest.approx(0.5)
