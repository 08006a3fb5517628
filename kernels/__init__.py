"""Kernel sources: native/ is the C++ extension, cuda/ holds the CUDA C++ files."""
