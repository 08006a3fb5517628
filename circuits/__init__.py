"""Circuit families: each file holds one function family(num_qubits, seed) -> QuantumCircuit."""
