"""Matrices on many qubits in native arithmetic."""
