"""Adapters for other CPU simulators (peers), each used in the way that suits it best.

In: a circuit. Out: the simulator's own job, and from a job the final state in Qiskit's bit order. It may not time
anything, nor import a peer's package before its adapter is constructed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.errors import EngineError

if TYPE_CHECKING:
    from qiskit import QuantumCircuit

Vector: TypeAlias = NDArray[np.complexfloating[Any, Any]]
Job: TypeAlias = Any  # a circuit in a simulator's own form


class UnsupportedError(Exception):
    """A peer lacks a gate; the message names it."""


class Peer(Protocol):
    """A simulator. A benchmark does not time ``convert``; it times ``run``, with allocation and hand-over."""

    def variants(self, circuit: QuantumCircuit) -> Sequence[str]:
        """Returns names of ways to run ``circuit`` (widths of fusion), of which the fastest counts."""

    def convert(self, circuit: QuantumCircuit, variant: str) -> Job:
        """Converts ``circuit`` to the simulator's own form; raises UnsupportedError if it lacks a gate."""

    def run(self, job: Job) -> Vector:
        """Returns the final state from |0...0>, in Qiskit's bit order."""


@dataclass(frozen=True, slots=True)
class PeerRow:
    """One row of `PEERS`.

    Attributes:
        packages: distributions that must be installed.
        precisions: precisions that the simulator has.
        create: constructs the adapter from the precision and the number of threads.
        environment: variables that its process needs beside the number of threads.
    """

    packages: tuple[str, ...]
    precisions: tuple[str, ...]
    create: Callable[[str, int], Peer]
    environment: Mapping[str, str] = field(default_factory=dict)

    def versions(self) -> dict[str, str] | None:
        """Returns the version of each package, None if one of them is not installed."""
        try:
            return {package: version(package) for package in self.packages}
        except PackageNotFoundError:
            return None


def gates(circuit: QuantumCircuit) -> Iterator[tuple[str, list[Any], list[int], Any]]:
    """Yields (name, parameters, qubits, operation) of every gate of a flat circuit; ``ccx`` becomes ``mcx``."""
    index = {bit: number for number, bit in enumerate(circuit.qubits)}
    for instruction in circuit.data:
        operation = instruction.operation
        name = "mcx" if operation.name == "ccx" else operation.name
        parameters = operation.params if name == "unitary" else [float(value) for value in operation.params]
        yield name, list(parameters), [index[bit] for bit in instruction.qubits], operation


def mirrored(num_qubits: int, qubits: Sequence[int]) -> list[int]:
    """Returns wires for big-endian simulators: with qubit q as wire n - 1 - q the state has Qiskit's bit order."""
    return [num_qubits - 1 - q for q in qubits]


class Aer:
    """Qiskit Aer's state-vector method with its own fusion."""

    def __init__(self, precision: str, threads: int) -> None:
        self.simulator = import_module("qiskit_aer").AerSimulator(
            method="statevector", precision=precision, max_parallel_threads=threads
        )

    def variants(self, circuit: QuantumCircuit) -> Sequence[str]:
        """Returns one variant: Aer chooses its fusion."""
        return ("default",)

    def convert(self, circuit: QuantumCircuit, variant: str) -> Job:
        """Transpiles without optimization, and saves the state at the end."""
        out = import_module("qiskit").transpile(circuit, self.simulator, optimization_level=0)
        out.save_statevector()
        return out

    def run(self, job: Job) -> Vector:
        """Returns the saved state."""
        result = self.simulator.run(job, shots=1).result()
        if not result.success:
            raise EngineError(f"qiskit-aer: {result.status}")
        return np.asarray(result.data(0)["statevector"])


class Qulacs:
    """Qulacs with its circuit optimizer."""

    def __init__(self, precision: str, threads: int) -> None:
        self.qulacs = import_module("qulacs")
        self.gate = import_module("qulacs.gate")
        self.optimizer = import_module("qulacs.circuit").QuantumCircuitOptimizer

    def variants(self, circuit: QuantumCircuit) -> Sequence[str]:
        """Returns no fusion, the light optimizer, blocks of 2 to 4 qubits; dense blocks gain nothing from fusion."""
        small = all(instruction.operation.num_qubits < 5 or instruction.name == "mcx" for instruction in circuit.data)
        return ("none", "light", "opt2", "opt3", "opt4") if small else ("none", "light")

    def convert(self, circuit: QuantumCircuit, variant: str) -> Job:
        """Adds gate by gate, then optimizes; Qulacs' rotations have the opposite sign."""
        out = self.qulacs.QuantumCircuit(circuit.num_qubits)
        one = {"h": out.add_H_gate, "x": out.add_X_gate, "z": out.add_Z_gate, "cx": out.add_CNOT_gate}
        one |= {"cz": out.add_CZ_gate, "swap": out.add_SWAP_gate}
        turn = {"rx": out.add_RX_gate, "ry": out.add_RY_gate, "rz": out.add_RZ_gate}
        for name, parameters, qubits, _ in gates(circuit):
            if name in one:
                one[name](*qubits)
            elif name in turn:
                turn[name](qubits[0], -parameters[0])
            elif name == "u":
                out.add_U3_gate(qubits[0], *parameters)
            elif name == "p":
                out.add_U1_gate(qubits[0], parameters[0])
            elif name == "rzz":
                out.add_multi_Pauli_rotation_gate(qubits, [3, 3], -parameters[0])
            elif name == "unitary":
                out.add_gate(self.gate.DenseMatrix(qubits, np.asarray(parameters[0])))
            elif name in ("cp", "mcx"):
                inner = self.gate.U1(qubits[-1], *parameters) if name == "cp" else self.gate.X(qubits[-1])
                out.add_gate(self._controlled(inner, qubits[:-1]))
            else:
                raise UnsupportedError(name)
        if variant == "light":
            self.optimizer().optimize_light(out)
        elif variant != "none":
            self.optimizer().optimize(out, int(variant.removeprefix("opt")))
        return out

    def _controlled(self, gate: Any, controls: Sequence[int]) -> Any:
        out = self.gate.to_matrix_gate(gate)
        for control in controls:
            out.add_control_qubit(control, 1)
        return out

    def run(self, job: Job) -> Vector:
        """Updates a new state and returns it."""
        state = self.qulacs.QuantumState(job.get_qubit_count())
        job.update_quantum_state(state)
        return np.asarray(state.get_vector())


class Lightning:
    """PennyLane Lightning's state vectors, without PennyLane's devices around them."""

    def __init__(self, name: str, precision: str) -> None:
        module = import_module(f"pennylane_lightning.lightning_{name}._state_vector")
        self.state = getattr(module, {"qubit": "LightningStateVector", "kokkos": "LightningKokkosStateVector"}[name])
        self.pennylane = import_module("pennylane")
        self.dtype = np.complex64 if precision == "single" else np.complex128

    def variants(self, circuit: QuantumCircuit) -> Sequence[str]:
        """Returns one variant: Lightning does not fuse."""
        return ("default",)

    def convert(self, circuit: QuantumCircuit, variant: str) -> Job:
        """Returns the width and the PennyLane operations."""
        qml = self.pennylane
        known = {"h": qml.Hadamard, "x": qml.PauliX, "z": qml.PauliZ, "rx": qml.RX, "ry": qml.RY, "rz": qml.RZ}
        known |= {"u": qml.U3, "p": qml.PhaseShift, "cx": qml.CNOT, "cz": qml.CZ, "swap": qml.SWAP}
        known |= {"cp": qml.ControlledPhaseShift, "rzz": qml.IsingZZ, "mcx": qml.MultiControlledX}
        out = []
        for name, parameters, qubits, _ in gates(circuit):
            wires = mirrored(circuit.num_qubits, qubits)
            if name == "unitary":
                out.append(qml.QubitUnitary(np.asarray(parameters[0]), wires=wires[::-1], unitary_check=False))
            elif name in known:
                out.append(known[name](*parameters, wires=wires))
            else:
                raise UnsupportedError(name)
        return circuit.num_qubits, out

    def run(self, job: Job) -> Vector:
        """Applies the operations to a new state and returns it."""
        num_qubits, operations = job
        state = self.state(num_qubits, dtype=self.dtype)
        state.reset_state()
        state.apply_operations(operations)
        return np.asarray(state.state)


class Qsim:
    """Google's qsim, called below Cirq's result objects."""

    MAX_QUBITS = 6  # of a gate

    def __init__(self, precision: str, threads: int) -> None:
        self.cirq, self.qsim, self.threads = import_module("cirq"), import_module("qsimcirq"), threads

    def variants(self, circuit: QuantumCircuit) -> Sequence[str]:
        """Returns fusion into gates of at most 2, 3 or 4 qubits."""
        return ("fuse2", "fuse3", "fuse4")

    def convert(self, circuit: QuantumCircuit, variant: str) -> Job:
        """Returns the simulator and the options of its C++ call, which include the translated circuit."""
        line = self.cirq.LineQubit.range(circuit.num_qubits)
        operations = []
        for name, parameters, qubits, operation in gates(circuit):
            wires = [line[wire] for wire in mirrored(circuit.num_qubits, qubits)]
            operations.append(self._operation(name, parameters, wires, operation))
        width = int(variant.removeprefix("fuse"))
        simulator = self.qsim.QSimSimulator(self.qsim.QSimOptions(max_fused_gate_size=width, cpu_threads=self.threads))
        translated = self.qsim.QSimCircuit(self.cirq.Circuit(operations))
        options = dict(simulator.qsim_options) | {"s": 1}
        options["c"], _ = simulator._translate_circuit(translated, "translate_cirq_to_qsim", line)
        return simulator, options

    def _operation(self, name: str, parameters: Sequence[Any], wires: Sequence[Any], operation: Any) -> Any:
        cirq = self.cirq
        plain = {"h": cirq.H, "x": cirq.X, "z": cirq.Z, "cx": cirq.CNOT, "cz": cirq.CZ, "swap": cirq.SWAP}
        powers = {"p": cirq.ZPowGate, "cp": cirq.CZPowGate}
        if name in plain:
            return plain[name](*wires)
        if name in ("rx", "ry", "rz"):
            return getattr(cirq, name)(parameters[0])(*wires)
        if name in powers:
            return powers[name](exponent=parameters[0] / np.pi)(*wires)
        if name == "rzz":
            return cirq.ZZPowGate(exponent=parameters[0] / np.pi, global_shift=-0.5)(*wires)
        if name == "u":
            return cirq.MatrixGate(operation.to_matrix())(*wires)
        if name == "mcx":
            return cirq.X(wires[-1]).controlled_by(*wires[:-1])
        if name == "unitary" and len(wires) <= self.MAX_QUBITS:
            return cirq.MatrixGate(np.asarray(parameters[0]), unitary_check=False)(*wires[::-1])
        raise UnsupportedError(f"{name} on {len(wires)} qubits")

    def run(self, job: Job) -> Vector:
        """Returns the full state from the C++ call."""
        simulator, options = job
        floats = simulator._sim_module.qsim_simulate_fullstate(options, 0)
        return np.asarray(floats.view(np.complex64))


class Qibojit:
    """Qibo with its compiled Numba backend."""

    def __init__(self, precision: str, threads: int) -> None:
        self.qibo = import_module("qibo")
        self.qibo.set_backend("qibojit", platform="numba")
        self.qibo.set_dtype("complex64" if precision == "single" else "complex128")
        self.qibo.set_threads(threads)

    def variants(self, circuit: QuantumCircuit) -> Sequence[str]:
        """Returns no fusion, and blocks of 2 or 4 qubits; dense blocks gain nothing from fusion."""
        small = all(instruction.operation.num_qubits < 5 or instruction.name == "mcx" for instruction in circuit.data)
        return ("none", "fuse2", "fuse4") if small else ("none",)

    def convert(self, circuit: QuantumCircuit, variant: str) -> Job:
        """Returns a Qibo circuit, fused as ``variant`` says."""
        g = self.qibo.gates
        known = {"h": g.H, "x": g.X, "z": g.Z, "rx": g.RX, "ry": g.RY, "rz": g.RZ, "u": g.U3, "p": g.U1, "cx": g.CNOT}
        known |= {"cz": g.CZ, "swap": g.SWAP, "cp": g.CU1, "rzz": g.RZZ}
        out = self.qibo.Circuit(circuit.num_qubits)
        for name, parameters, qubits, _ in gates(circuit):
            wires = mirrored(circuit.num_qubits, qubits)
            if name == "unitary":
                out.add(g.Unitary(np.asarray(parameters[0]), *wires[::-1], check_unitary=False))
            elif name == "mcx":
                out.add(g.X(wires[-1]).controlled_by(*wires[:-1]))
            elif name in known:
                out.add(known[name](*wires, *parameters))
            else:
                raise UnsupportedError(name)
        return out if variant == "none" else out.fuse(max_qubits=int(variant.removeprefix("fuse")))

    def run(self, job: Job) -> Vector:
        """Computes the final state anew and returns it."""
        job._final_state = None
        return np.asarray(job().state())


class NumPyProduct:
    """Qiskit's Statevector, a NumPy matrix product: the reference time for circuits of dense blocks."""

    def __init__(self, precision: str, threads: int) -> None:
        self.statevector = import_module("qiskit.quantum_info").Statevector

    def variants(self, circuit: QuantumCircuit) -> Sequence[str]:
        """Returns one variant."""
        return ("default",)

    def convert(self, circuit: QuantumCircuit, variant: str) -> Job:
        """Returns the circuit; it may only have matrices on five qubits or more, because others are far too slow."""
        if any(name != "unitary" or len(qubits) < 5 for name, _, qubits, _ in gates(circuit)):
            raise UnsupportedError("for dense blocks only")
        return circuit

    def run(self, job: Job) -> Vector:
        """Evolves |0...0> and returns the state."""
        return np.asarray(self.statevector(job).data)


# The OpenMP threads of Kokkos are pinned: its documentation advises this, and measured runs are faster.
KOKKOS_ENVIRONMENT = {"OMP_PROC_BIND": "spread", "OMP_PLACES": "threads"}

BOTH = ("double", "single")
PEERS: dict[str, PeerRow] = {
    "aer": PeerRow(("qiskit-aer",), BOTH, Aer),
    "qulacs": PeerRow(("qulacs",), ("double",), Qulacs),
    "lightning.qubit": PeerRow(("pennylane", "pennylane-lightning"), BOTH, lambda p, _: Lightning("qubit", p)),
    "lightning.kokkos": PeerRow(
        ("pennylane", "pennylane-lightning-kokkos"), BOTH, lambda p, _: Lightning("kokkos", p), KOKKOS_ENVIRONMENT
    ),
    "qsim": PeerRow(("cirq-core", "qsimcirq"), ("single",), Qsim),
    "qibojit": PeerRow(("qibo", "qibojit"), BOTH, Qibojit),
    "numpy": PeerRow(("numpy", "qiskit"), ("double",), NumPyProduct),
}
