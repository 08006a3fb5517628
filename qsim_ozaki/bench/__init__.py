"""Measures: simulators side by side, a GPU beside cuStateVec, arithmetic experiments."""

from qsim_ozaki.bench.blocks.experiment import Experiment
from qsim_ozaki.bench.blocks.gemm import GemmOptions, measure_gemm
from qsim_ozaki.bench.blocks.hadamard import measure_hadamard
from qsim_ozaki.bench.blocks.report import show_experiment, write_experiment
from qsim_ozaki.bench.gpu.runner import CudaBenchOptions, measure_gpu
from qsim_ozaki.bench.record import Report
from qsim_ozaki.bench.report import read_report, require_plot, show_progress, show_report, write_report
from qsim_ozaki.bench.runner import BenchOptions, measure_circuits

__all__ = [
    "BenchOptions",
    "CudaBenchOptions",
    "Experiment",
    "GemmOptions",
    "Report",
    "measure_circuits",
    "measure_gemm",
    "measure_gpu",
    "measure_hadamard",
    "read_report",
    "require_plot",
    "show_experiment",
    "show_progress",
    "show_report",
    "write_experiment",
    "write_report",
]
