"""Kernel sources: cpu/ is the C++ extension, cuda/ holds the CUDA C++ files."""
