"""Matrices on many qubits in emulated FP64, by INT8 products."""
