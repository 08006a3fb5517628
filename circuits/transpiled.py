"""Any family as a transpiler leaves it for a device.

In: a width, a seed, a family. Out: its circuit on a line in {cx, rz, sx, x}. It may import Qiskit and NumPy only.
"""

import importlib

from qiskit import QuantumCircuit, transpile
from qiskit.transpiler import CouplingMap


def transpiled(num_qubits: int, seed: int = 7, family: str = "qft") -> QuantumCircuit:
    """The circuit of ``family`` on a line of qubits in {cx, rz, sx, x}, by Qiskit's transpiler at level 1.

    Args:
        num_qubits: width.
        seed: of the family and of the transpiler; ``metadata`` is the family's, and ``"qubits"`` says which qubit of
            the line holds each qubit of the family at the end.
        family: name of a family's function.

    Source:
        Qiskit's default pass manager; routing by LightSABRE, arXiv:2409.08368.
    """
    module = importlib.import_module(f"{__package__}.{family}")
    plain: QuantumCircuit = getattr(module, family)(num_qubits, seed)
    on_line = transpile(
        plain,
        basis_gates=["cx", "rz", "sx", "x"],
        coupling_map=CouplingMap.from_line(num_qubits),
        optimization_level=1,
        seed_transpiler=seed,
    )
    metadata = {**plain.metadata, "qubits": on_line.layout.final_index_layout()}
    circuit = QuantumCircuit(num_qubits, name=f"transpiled_{family}_n{num_qubits}", metadata=metadata)
    circuit.compose(on_line, inplace=True)  # without its layout: the state is in the order of the line
    return circuit
