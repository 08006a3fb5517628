"""Stacks on a GPU: the kernel's source run on the host against NumPy; on a GPU against the CPU engine."""

import numpy as np
import pytest
from qiskit.circuit.library import efficient_su2
from support import stack_host
from support.bell import bell
from support.random_ops import SMALL_KINDS, random_op, slotted
from support.reference import apply_ops, tolerance, zero_state

from qsim_ozaki import OzakiBackend, save_statevector
from qsim_ozaki.engines import StackWork, select
from qsim_ozaki.engines.cuda import stack
from qsim_ozaki.errors import EngineError
from qsim_ozaki.ir import Kind, Op

PRECISIONS = ["double", "single"]


def random_work(rng, num_qubits, num_rows):
    """Random ops, half of the matrices and diagonals as slots; and the ops of each row."""
    placed, _, numbers, each = slotted(
        rng, [random_op(rng, num_qubits, kinds=SMALL_KINDS) for _ in range(12)], num_rows
    )
    return StackWork(num_qubits, placed, numbers), each


def works_of(rng):
    """Rows that share a block, that do not, programs of several widths, one without operators."""
    made = [random_work(rng, num_qubits, rows) for num_qubits, rows in ((1, 300), (2, 3), (4, 20), (7, 3), (9, 2))]
    return [work for work, _ in made] + [StackWork(3, [], np.empty((2, 0), complex))], [each for _, each in made]


@pytest.mark.skipif(stack_host.compiler() is None, reason="no C++ compiler")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_kernel_does_what_the_operators_do(rng, tmp_path, precision):
    stack_host.build(tmp_path, precision)
    works, each = works_of(rng)
    *found, empty = stack_host.run(works, tmp_path, precision)
    for states, rows in zip(found, each, strict=True):
        for state, ops in zip(states, rows, strict=True):
            assert np.linalg.norm(state - apply_ops(zero_state(state.size.bit_length() - 1), ops)) <= tolerance(
                len(ops), precision
            )
    np.testing.assert_array_equal(empty, [[1, *[0] * 7]] * 2)
    alone = StackWork(works[2].num_qubits, works[2].ops, works[2].numbers[7:8])
    np.testing.assert_array_equal(stack_host.run([alone], tmp_path, precision)[0][0], found[2][7])


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_engine_runs_stacks(rng, engine, precision):
    works, each = works_of(rng)
    for states, rows in zip(engine.run_stacks(works, precision), each, strict=False):
        assert states.dtype == (np.complex128 if precision == "double" else np.complex64)
        for state, ops in zip(states, rows, strict=True):
            error = np.linalg.norm(state - apply_ops(zero_state(state.size.bit_length() - 1), ops))
            assert error <= tolerance(len(ops), precision)


@pytest.mark.parametrize("num_qubits", [3, 10])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_engine_that_hands_its_states_over_gives_the_same_shots(rng, monkeypatch, num_qubits, precision):
    """As one that is not called "cpu" does; here it is the CPU engine under another name."""
    circuit = efficient_su2(num_qubits, reps=1)
    measured = circuit.measure_all(inplace=False)
    saved = circuit.copy()
    save_statevector(saved)
    binds = [rng.uniform(-3, 3, (5, circuit.num_parameters)) for _ in range(2)]
    backend = OzakiBackend(seed_simulator=2, memory=True, precision=precision)

    def results():
        result = backend.run([measured, bell(), saved], parameter_binds=[binds[0], None, binds[1]]).result()
        states = [np.asarray(result.get_statevector(index)) for index in range(6, 11)]
        return [result.get_memory(index) for index in range(6)], states

    want = results()
    monkeypatch.setattr("qsim_ozaki.engines.cpu.engine.CpuEngine.samples_stacks", False)
    found = results()
    assert found[0] == want[0]
    np.testing.assert_array_equal(found[1], want[1])


@pytest.mark.cuda
def test_rows_on_a_gpu_draw_what_the_cpu_draws(rng):
    try:
        select("cuda")
    except EngineError as error:
        pytest.skip(str(error))
    circuit = efficient_su2(9, reps=2).measure_all(inplace=False)
    binds = [rng.uniform(-3, 3, (300, circuit.num_parameters)), None, None]
    found = []
    for engine in ("cpu", "cuda"):
        backend = OzakiBackend(engine=engine, seed_simulator=2, memory=True)
        result = backend.run([circuit, bell(), bell()], parameter_binds=binds).result()
        assert all(each.metadata["steps"] == {"stack": 1} for each in result.results)
        found.append([result.get_memory(index) for index in range(302)])
    assert found[0] == found[1]


def test_tables_lie_as_the_kernel_reads_them():
    assert (stack.STEP.itemsize, stack.BLOCK.itemsize) == (56, 40)
    work = StackWork(2, [Op(Kind.HADAMARD, (0, 1), np.empty(0, complex))], np.empty((70, 0), complex))
    tables = stack.stack_tables([work, work])
    assert tables.blocks["num_rows"].tolist() == [64, 6, 64, 6]
    assert tables.blocks["out"].tolist() == [0, 256, 280, 536]
    assert tables.blocks["first_step"].tolist() == [0, 0, 2, 2]
    assert (tables.num_amps, tables.block_amps) == (560, 256)
