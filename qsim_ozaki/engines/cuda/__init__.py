"""The CUDA engine: kernels of `kernels/cuda`, launched through CuPy, or compiled ahead for another machine."""

from qsim_ozaki.engines.cuda.warm import Warmed, architecture_here, compile_table

__all__ = ["Warmed", "architecture_here", "compile_table"]
