"""The quantum approximate optimisation algorithm for MaxCut.

In: a width, a seed. Out: a QAOA circuit on a random graph, fixed angles. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit

# arXiv:2107.00677: angles fixed for all 3-regular graphs, by number of layers
GAMMAS = {1: (0.616,), 2: (0.488, 0.898), 3: (0.422, 0.798, 0.937)}
BETAS = {1: (0.393,), 2: (0.555, 0.293), 3: (0.609, 0.459, 0.235)}


def qaoa(num_qubits: int, seed: int = 7, layers: int = 3) -> QuantumCircuit:
    """H on all, then per layer exp(-i gamma C) and exp(-i beta B), C = sum over edges of (1 - Z Z) / 2, B = sum of X.

    The graph is a random 3-regular one; a ring below 6 qubits and where the width is odd.

    Args:
        num_qubits: width, at least 2.
        seed: of the graph; ``metadata`` has ``edges``, ``gammas`` and ``betas``.
        layers: 1, 2 or 3.

    Source:
        Farhi, Goldstone, Gutmann, arXiv:1411.4028; angles from Wurtz and Lykov, arXiv:2107.00677.
    """
    edges = _graph(num_qubits, np.random.default_rng([seed, num_qubits]))
    metadata = {"edges": edges, "gammas": GAMMAS[layers], "betas": BETAS[layers]}
    circuit = QuantumCircuit(num_qubits, name=f"qaoa_n{num_qubits}", metadata=metadata)
    circuit.h(range(num_qubits))
    for gamma, beta in zip(GAMMAS[layers], BETAS[layers], strict=True):
        for q, r in edges:
            circuit.rzz(-gamma, q, r)  # exp(-i gamma (1 - ZZ) / 2) but for a phase
        circuit.rx(2 * beta, range(num_qubits))
    return circuit


def _graph(num_qubits: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Edges of a random 3-regular graph (pairing model, drawn again until simple), or of a ring."""
    if num_qubits < 6 or num_qubits % 2:
        ring = [(q, (q + 1) % num_qubits) for q in range(num_qubits)]
        return sorted({(min(edge), max(edge)) for edge in ring})
    while True:
        stubs = rng.permutation(np.repeat(np.arange(num_qubits), 3)).reshape(-1, 2)
        edges = {(int(min(pair)), int(max(pair))) for pair in stubs}
        if len(edges) == len(stubs) and all(q != r for q, r in edges):
            return sorted(edges)
