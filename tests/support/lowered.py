"""What the tests of lowering share: checks of a program against Qiskit, and made-up operations."""

from dataclasses import replace

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit import (
    Gate,
    Instruction,
)
from qiskit.quantum_info import Operator, Statevector, random_unitary
from support.reference import apply_ops, tolerance, unitary_of, zero_state
from support.verify import verify

from qsim_ozaki.ir import Branch, Initialize, Op, OpList, Reset
from qsim_ozaki.lowering import lower

QISKIT_ROUNDING = 64  # gates in which Qiskit's own definition of one gate may round, and its matrix does


def lowered(circuit):
    program = lower(circuit)
    verify(program)
    return replace(program, body=one_by_one(program.body))


def one_by_one(body):
    """``body`` with operators that stand together taken apart."""
    out = []
    for item in body:
        if isinstance(item, OpList):
            out += item
        elif isinstance(item, Branch):
            out.append(replace(item, then=one_by_one(item.then), otherwise=one_by_one(item.otherwise)))
        else:
            out.append(item)
    return tuple(out)


def final_state(program):
    """The state of a program of operators and first-state boundaries alone, in the user's qubit order."""
    state = zero_state(program.num_qubits)
    for item in program.body:
        if isinstance(item, Op):
            state = apply_ops(state, [item])
        elif isinstance(item, Initialize):
            state = initialized(state, item)
        else:
            assert isinstance(item, Reset)  # here only of qubits in |0>
    return in_order(state, program.output_qubits)


def initialized(state, item):
    """``item`` on qubits that are in |0>."""
    out = np.zeros_like(state)
    for index in np.flatnonzero(state):
        for value, amp in enumerate(item.vector):
            target = sum(((value >> j) & 1) << q for j, q in enumerate(item.qubits))
            out[index | target] += state[index] * amp
    return out


def in_order(state, qubits):
    """The state whose qubit j is ``qubits[j]``, |0> where that is -1."""
    out = np.zeros(1 << len(qubits), complex)
    for index, amp in enumerate(state):
        out[sum(((index >> q) & 1) << j for j, q in enumerate(qubits) if q >= 0)] += amp
    return out


def check_unitary(circuit, expected=None):
    program = lowered(circuit)
    expected = Operator(circuit).data if expected is None else np.asarray(expected)
    assert program.num_qubits == circuit.num_qubits
    got = unitary_of(program.body, program.num_qubits)
    atol = tolerance(len(program.body) + QISKIT_ROUNDING * len(circuit.data))
    np.testing.assert_allclose(got, expected, rtol=0, atol=atol)
    return program


def check_gate(gate, *, padding=1):
    """``gate`` on its qubits in a scrambled order, in a circuit of some more."""
    num_qubits = gate.num_qubits + padding
    circuit = QuantumCircuit(num_qubits, global_phase=0.7)
    circuit.h(range(num_qubits))
    circuit.append(gate, np.random.default_rng(gate.num_qubits).permutation(num_qubits)[: gate.num_qubits].tolist())
    return check_unitary(circuit)


def check_state(circuit):
    program = lowered(circuit)
    expected = Statevector(circuit).data
    atol = tolerance(len(program.body) + QISKIT_ROUNDING * len(circuit.data))
    np.testing.assert_allclose(final_state(program), expected, rtol=0, atol=atol)
    return program


def random_matrix(num_qubits, seed=7):
    return random_unitary(2**num_qubits, seed=seed).data


def save(num_qubits, **fields):
    """As Aer's instruction: by name and private fields alone."""
    instruction = Instruction(fields.pop("name", "save_statevector"), num_qubits, 0, [])
    instruction._directive = True
    for key, value in {"_label": "state", "_subtype": "single", **fields}.items():
        setattr(instruction, key, value)
    return instruction


def without_saves(circuit):
    out = circuit.copy_empty_like()
    for instruction in circuit.data:
        if not instruction.name.startswith("save_"):
            out.append(instruction)
    return out


class Opaque(Gate):
    """A gate that has a matrix and no definition."""

    def __init__(self, matrix, name="opaque"):
        super().__init__(name, int(np.log2(len(matrix))), [])
        self.matrix = matrix

    def to_matrix(self):
        return self.matrix


class Bare(Gate):
    """A gate that has neither."""

    def __init__(self, name="mystery", num_qubits=1):
        super().__init__(name, num_qubits, [])
