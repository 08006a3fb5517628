"""Measures: simulators side by side, a GPU beside cuStateVec, arithmetic experiments.

Names are imported when first used: a GPU machine without Qiskit has parts of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qsim_ozaki import lazy

if TYPE_CHECKING:
    from qsim_ozaki.bench.blocks.experiment import Experiment as Experiment
    from qsim_ozaki.bench.blocks.gemm import GemmOptions as GemmOptions
    from qsim_ozaki.bench.blocks.gemm import measure_gemm as measure_gemm
    from qsim_ozaki.bench.blocks.hadamard import measure_hadamard as measure_hadamard
    from qsim_ozaki.bench.blocks.report import show_experiment as show_experiment
    from qsim_ozaki.bench.blocks.report import write_experiment as write_experiment
    from qsim_ozaki.bench.gpu.runner import CudaBenchOptions as CudaBenchOptions
    from qsim_ozaki.bench.gpu.runner import measure_gpu as measure_gpu
    from qsim_ozaki.bench.record import Report as Report
    from qsim_ozaki.bench.report import read_report as read_report
    from qsim_ozaki.bench.report import require_plot as require_plot
    from qsim_ozaki.bench.report import show_progress as show_progress
    from qsim_ozaki.bench.report import show_report as show_report
    from qsim_ozaki.bench.report import write_report as write_report
    from qsim_ozaki.bench.runner import BenchOptions as BenchOptions
    from qsim_ozaki.bench.runner import measure_circuits as measure_circuits

_PUBLIC = {
    "blocks.experiment": ("Experiment",),
    "blocks.gemm": ("GemmOptions", "measure_gemm"),
    "blocks.hadamard": ("measure_hadamard",),
    "blocks.report": ("show_experiment", "write_experiment"),
    "gpu.runner": ("CudaBenchOptions", "measure_gpu"),
    "record": ("Report",),
    "report": ("read_report", "require_plot", "show_progress", "show_report", "write_report"),
    "runner": ("BenchOptions", "measure_circuits"),
}
__all__ = [name for names in _PUBLIC.values() for name in names]

__getattr__, __dir__ = lazy.attach(__name__, _PUBLIC)
