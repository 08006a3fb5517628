"""Dynamic circuits: control flow by hand-made cases, exact probabilities, limits, and how measurements share work."""

import numpy as np
import pytest
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister, qasm3, transpile
from qiskit.circuit import Duration
from qiskit.circuit.classical import expr, types
from qiskit.quantum_info import SparsePauliOp, random_statevector
from support.distribution import assert_follows

from qsim_ozaki import OzakiBackend, save_expectation_value, save_statevector, set_statevector
from qsim_ozaki.errors import OptionError, ProgramError
from qsim_ozaki.runtime import executor, readout

LEVELS = [None, 0, 1, 2, 3]


def exact(circuit, **options):
    return OzakiBackend(**options).run(circuit, shots=None).result().get_counts()


def at_level(circuit, level):
    return circuit if level is None else transpile(circuit, OzakiBackend(), optimization_level=level)


def coins(count):
    """``count`` fair coins, thrown one after the other with one qubit."""
    circuit = QuantumCircuit(1, count, name="coins")
    for bit in range(count):
        circuit.h(0)
        circuit.measure(0, bit)
    return circuit


@pytest.mark.parametrize("level", LEVELS)
def test_t33_a_store_inside_a_loop(level):
    circuit = QuantumCircuit(1, 1)
    var = circuit.add_var("var", expr.lift(0, types.Uint(4)))
    with circuit.for_loop(range(3)):
        circuit.store(var, expr.bit_xor(var, 1))
    with circuit.if_test(expr.equal(var, 1)):
        circuit.x(0)
    circuit.measure(0, 0)
    assert exact(at_level(circuit, level)) == {"1": 1}


@pytest.mark.parametrize("level", LEVELS)
def test_t35_shifts_sums_and_indices(level):
    circuit = QuantumCircuit(QuantumRegister(4), ClassicalRegister(3, "c"), ClassicalRegister(3, "out"))
    c = circuit.cregs[0]
    a = circuit.add_var("a", expr.lift(1, types.Uint(3)))
    circuit.x(0)
    circuit.measure(0, c[0])
    for bit, test in enumerate([expr.equal(expr.shift_left(c, 1), 2), expr.equal(expr.add(a, c), 2), expr.index(c, 0)]):
        with circuit.if_test(test):
            circuit.x(1 + bit)
        circuit.measure(1 + bit, 3 + bit)
    assert exact(at_level(circuit, level)) == {"111 001": 1}


@pytest.mark.parametrize("level", LEVELS)
def test_t37_a_box(level):
    circuit = QuantumCircuit(1, 1)
    with circuit.box(duration=100):
        circuit.x(0)
        flag = circuit.add_var("flag", expr.lift(True))
        with circuit.if_test(flag):
            circuit.measure(0, 0)
    assert exact(at_level(circuit, level)) == {"1": 1}


@pytest.mark.parametrize("level", LEVELS)
def test_t38_gates_inside_nested_control_flow(level):
    circuit = QuantumCircuit(3, 3)
    with circuit.if_test((circuit.clbits[0], 0)):
        circuit.x(0)
        circuit.ch(0, 1)
        circuit.measure(1, 1)
        with circuit.if_test((circuit.clbits[1], 1)) as otherwise:
            circuit.dcx(1, 2)
        with otherwise:
            circuit.rccx(0, 1, 2)
    circuit.measure([0, 1, 2], [0, 1, 2])
    # (1, 1, 0) -> dcx(1, 2): cx 1->2, cx 2->1 -> (1, 0, 1); else (1, 0, 0)
    assert exact(at_level(circuit, level)) == pytest.approx({"101": 0.5, "001": 0.5})


@pytest.mark.parametrize("level", LEVELS)
def test_t12_a_break_ends_its_loop(level):
    circuit = QuantumCircuit(1, 1)
    count = circuit.add_var("count", expr.lift(0, types.Uint(4)))
    with circuit.for_loop(range(5)):
        circuit.store(count, expr.add(count, 1))
        circuit.h(0)
        circuit.measure(0, 0)
        with circuit.if_test((circuit.clbits[0], 1)):
            circuit.break_loop()
    circuit.add_register(ClassicalRegister(4, "counted"))
    circuit.store(circuit.cregs[-1], count)
    want = {f"{rounds:04b} 1": 0.5**rounds for rounds in range(1, 6)} | {"0101 0": 0.5**5}
    assert exact(at_level(circuit, level)) == pytest.approx(want)


def test_continue_goes_on_with_the_next_round():
    circuit = QuantumCircuit(1, 3)
    for loop in ("for", "while"):
        rounds = circuit.add_var(f"rounds of {loop}", expr.lift(0, types.Uint(3)))
        kept = circuit.add_var(f"kept of {loop}", expr.lift(0, types.Uint(3)))
        manager = circuit.for_loop(range(5)) if loop == "for" else circuit.while_loop(expr.less(rounds, 5))
        with manager:
            circuit.store(rounds, expr.add(rounds, 1))
            with circuit.if_test(expr.less(rounds, 4)):
                circuit.continue_loop()
            circuit.store(kept, expr.add(kept, rounds))
        with circuit.if_test(expr.equal(kept, (4 + 5) % 8)):
            circuit.store(circuit.clbits[0 if loop == "for" else 1], True)
    assert exact(circuit) == {"011": 1}


def test_a_break_leaves_the_innermost_loop_alone():
    circuit = QuantumCircuit(1, 4)
    outer = circuit.add_var("outer", expr.lift(0, types.Uint(4)))
    with circuit.while_loop(expr.less(outer, 3)):
        with circuit.for_loop(range(4)):
            with circuit.switch(outer) as case, case(case.DEFAULT):
                circuit.break_loop()
            circuit.x(0)
        circuit.store(outer, expr.add(outer, 1))
    circuit.store(circuit.cregs[0], outer)
    assert exact(circuit) == {"0011": 1}


def test_a_variable_of_a_block_starts_anew_each_round():
    body = QuantumCircuit(1, 2)
    fresh = expr.Var.new("fresh", types.Bool())
    body.add_uninitialized_var(fresh)
    with body.if_test((body.clbits[0], 0)):
        body.store(fresh, True)
    with body.if_test(fresh):
        body.store(body.clbits[0], True)
    circuit = QuantumCircuit(1, 2, name="anew")
    circuit.for_loop(range(2), None, body, [0], [0, 1])
    with pytest.raises(ProgramError, match="'anew': variable 'fresh' is read before it has a value"):
        OzakiBackend().run(circuit).result()


def test_switches_on_bits_registers_and_expressions():
    circuit = QuantumCircuit(QuantumRegister(3), ClassicalRegister(3, "out"), ClassicalRegister(2, "low"))
    out, low = circuit.cregs
    circuit.h([0, 1])
    circuit.measure([0, 1], low)
    for place, target in enumerate([low, low[1], expr.bit_and(low, 1)]):
        with circuit.switch(target) as case:
            with case(0):
                circuit.store(out[place], True)
            if target is low:
                with case(2, 3):
                    circuit.store(out[place], True)
                with case(case.DEFAULT):
                    circuit.store(out[place], False)
    want = {f"{low} {out}": 0.25 for low, out in [("00", "111"), ("01", "010"), ("10", "101"), ("11", "001")]}
    assert exact(circuit) == pytest.approx(want)


def test_t89_openqasm_3_control_flow():
    text = """OPENQASM 3.0; include "stdgates.inc"; qubit[2] q; bit[2] c;
    for uint i in [0:2] { x q[0]; }
    c[0] = measure q[0];
    while (c[0]) { h q[1]; c[1] = measure q[1]; if (c[1]) { x q[0]; c[0] = measure q[0]; } }"""
    assert exact(qasm3.loads(text)) == pytest.approx({"10": 1})


def test_repeat_until_success_has_exact_probabilities():
    """Infinitely many histories: what is left after 60 halvings is neglected, and said."""
    circuit = QuantumCircuit(2, 2)
    circuit.ry(1.0, 1)
    with circuit.while_loop((circuit.clbits[0], 0)):
        circuit.h(0)
        circuit.measure(0, 0)
        circuit.reset(0)
        circuit.ry(0.3, 1)
    circuit.measure(1, 1)
    result = OzakiBackend().run(circuit, shots=None).result()
    want = sum(0.5**k * np.sin((1 + 0.3 * k) / 2) ** 2 for k in range(1, 100))
    assert result.get_counts() == pytest.approx({"01": 1 - want, "11": want}, abs=1e-14)
    metadata = result.results[0].metadata
    assert metadata["sampling"] == "exact"
    assert 0 < metadata["neglected_probability"] < 1e-17


def test_exact_probabilities_need_no_seed_and_no_memory():
    circuit = coins(3)
    many = exact(circuit)
    assert many == pytest.approx(dict.fromkeys([f"{value:03b}" for value in range(8)], 1 / 8))
    assert exact(circuit, max_memory_bytes=32) == pytest.approx(many)
    with pytest.raises(OptionError, match="memory=True needs shots"):
        OzakiBackend().run(circuit, shots=None, memory=True)


def test_too_many_branches_or_outcomes_are_refused(monkeypatch):
    monkeypatch.setattr(executor, "MAX_BRANCHES", 100)
    with pytest.raises(OptionError, match=r"'coins', shots=None: .* more than 100 branches .*Give a number of shots"):
        exact(coins(8))
    monkeypatch.setattr(readout, "MAX_EXACT_QUBITS", 5)
    wide = QuantumCircuit(6, name="wide")
    wide.h(range(6))
    wide.measure_all()
    with pytest.raises(OptionError, match=r"'wide', shots=None: 6 measured qubits have 2\^6 outcomes; .* at most 5"):
        exact(wide)
    monkeypatch.undo()
    monkeypatch.setattr(readout, "MAX_EXACT_OUTCOMES", 60)
    with pytest.raises(OptionError, match=r"'wide', shots=None: more than 60 outcomes"):
        exact(wide)


def test_a_loop_without_end_is_stopped():
    circuit = QuantumCircuit(1, 1, name="endless")
    with circuit.while_loop((circuit.clbits[0], 0)):
        circuit.x(0)
    circuit.measure(0, 0)
    with pytest.raises(ProgramError, match=r"'endless': its while loops have run 100000 rounds .*become false"):
        OzakiBackend().run(circuit).result()


def test_an_endless_loop_can_be_cancelled(monkeypatch):
    monkeypatch.setattr(executor, "MAX_ROUNDS", 10**9)
    circuit = QuantumCircuit(1, 1)
    with circuit.while_loop((circuit.clbits[0], 0)):
        pass
    circuit.measure(0, 0)
    job = OzakiBackend().run(circuit)
    assert job.cancel()
    assert job.wait(60)


@pytest.mark.parametrize("shots", [1000, None])
def test_t32_empty_bodies_end_at_once(shots):
    circuit = QuantumCircuit(1, 1)
    with circuit.if_test((circuit.cregs[0], 0)) as otherwise:
        pass
    with otherwise:
        pass
    with circuit.switch(circuit.cregs[0]) as case, case(0):
        pass
    circuit.measure(0, 0)
    counts = OzakiBackend().run(circuit, shots=shots).result().get_counts()
    assert counts == {"0": shots or 1}


def test_a_classical_program_without_measurements_has_counts():
    circuit = QuantumCircuit(0, 4)
    value = circuit.add_var("value", expr.lift(1, types.Uint(4)))
    with circuit.for_loop(range(3)):
        circuit.store(value, expr.mul(value, 3))
    circuit.store(circuit.cregs[0], value)
    assert exact(circuit) == {"1011": 1}
    assert OzakiBackend().run(circuit, shots=3).result().get_counts() == {"1011": 3}


def test_a_stored_bit_is_not_lost_to_an_idle_qubits_measurement():
    circuit = QuantumCircuit(2, 2)
    circuit.x(0)
    circuit.store(circuit.clbits[1], True)
    circuit.measure([0, 1], [0, 1])  # qubit 1 is idle: its 0 replaces the stored 1
    assert exact(circuit) == {"01": 1}
    circuit.store(circuit.clbits[0], False)
    assert exact(circuit) == {"00": 1}


def test_delays_and_stretches_take_no_time():
    circuit = QuantumCircuit(1, 1)
    circuit.x(0)
    circuit.delay(expr.add(circuit.add_stretch("gap"), Duration.ns(20.0)), 0)
    circuit.delay(100, 0, unit="ns")
    circuit.measure(0, 0)
    assert exact(circuit) == {"1": 1}


def test_initialize_inside_a_loop_resets_in_later_rounds(rng):
    vector = random_statevector(4, seed=rng)
    circuit = QuantumCircuit(3, 1)
    with circuit.while_loop((circuit.clbits[0], 0)):
        circuit.initialize(vector.data, [0, 1])
        circuit.h(2)
        circuit.measure(2, 0)
    circuit.cx(0, 1)
    save_expectation_value(circuit, "IZX")
    value = OzakiBackend().run(circuit, shots=100).result().data(0)["expectation_value"]
    evolve = QuantumCircuit(2)
    evolve.cx(0, 1)
    assert value == pytest.approx(vector.evolve(evolve).expectation_value(SparsePauliOp("ZX")).real)


def test_writing_all_qubits_collapses_nothing():
    circuit = coins(1)
    set_statevector(circuit, [0.6, 0.8])
    save_statevector(circuit)
    circuit.initialize([0, 1], 0)
    metadata = OzakiBackend().run(circuit, shots=1).result().results[0].metadata
    assert metadata["histories"] == 1


def mid_measured(width, middle):
    circuit = QuantumCircuit(width, width + 1)
    for layer in range(4):
        for qubit in range(width):
            circuit.ry(0.1 + 0.3 * qubit + layer, qubit)
        for qubit in range(width - 1):
            circuit.cx(qubit, qubit + 1)
        if layer == 1 and middle:
            circuit.measure(width // 2, width)
    circuit.measure(range(width), range(width))
    return circuit


def test_t61_shots_that_share_a_history_share_its_state():
    """So that one measurement in the middle costs a small factor, whatever the number of shots."""
    circuit = mid_measured(6, True)
    result = OzakiBackend(seed_simulator=3).run(circuit, shots=100_000).result()
    assert result.results[0].metadata["histories"] == 2
    want = OzakiBackend().run(circuit, shots=None).result().get_counts()
    assert_follows(result.get_counts(), want)


def test_t17_a_gate_under_a_condition():
    circuit = QuantumCircuit(2, 2)
    circuit.h(0)
    circuit.measure(0, 0)
    with circuit.if_test((circuit.clbits[0], 1)):
        circuit.x(1)
    circuit.measure(1, 1)
    assert exact(circuit) == pytest.approx({"00": 0.5, "11": 0.5})


def test_t65_gates_that_nobody_sees_cost_no_histories():
    circuit = QuantumCircuit(4, 4)
    circuit.h(range(4))
    circuit.measure(range(4), range(4))
    circuit.barrier()
    circuit.x(range(4))
    circuit.cx(0, 1)
    assert OzakiBackend().run(circuit, shots=500).result().results[0].metadata["histories"] == 1
    circuit.measure(0, 0)
    want = {f"{rest}{first}": 1 / 16 for rest in ("".join(f"{i:03b}") for i in range(8)) for first in "01"}
    assert exact(circuit) == pytest.approx(want)
