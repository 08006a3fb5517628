"""One map in every arithmetic: a matrix on many qubits, a Hadamard layer."""
