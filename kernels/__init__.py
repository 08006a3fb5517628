"""Kernel sources: native/ is the C++ extension, cuda/ holds CUDA C++ in folders; see README.md."""
