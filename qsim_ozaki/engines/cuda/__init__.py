"""The CUDA engine: kernels of `kernels/cuda`, launched through CuPy."""
