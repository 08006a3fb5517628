"""Nsight Compute's figures of the emulated block's kernels: a part of emulated_session.py."""

import csv
import subprocess

from emulated_inputs import COUNTS, haar_on, random_amps

from qsim_ozaki.engines.cuda.device.kernels import DOUBLE
from qsim_ozaki.engines.cuda.ozaki.block import EmulatedBlock
from qsim_ozaki.engines.cuda.ozaki.pipeline import Pipeline, pipeline

BUSY, OVER_ALL = ".avg.pct_of_peak_sustained_active", ".avg.pct_of_peak_sustained_elapsed"
KERNELS = "regex:ozaki_(encode|scale|residues|wgmma|held|product|finish|reconstruct|commit)"
METRICS = {
    "us": "gpu__time_duration.sum",
    "tensor": "sm__pipe_tensor_cycles_active" + BUSY,
    "fma": "sm__inst_executed_pipe_fma" + BUSY,
    "alu": "sm__inst_executed_pipe_alu" + BUSY,
    "fp64": "sm__inst_executed_pipe_fp64" + BUSY,
    "issue": "smsp__issue_active" + BUSY,
    "occupancy": "sm__warps_active" + BUSY,
    "dram": "dram__throughput" + OVER_ALL,
    "l2": "lts__throughput" + OVER_ALL,
    "shared": "l1tex__data_pipe_lsu_wavefronts_mem_shared" + OVER_ALL,
    "conflicts": "l1tex__data_bank_conflicts_pipe_lsu.sum",
    "registers": "launch__registers_per_thread",
}


def kernels_once(engine):
    """One block of each kind, for the profiler."""
    amps = random_amps(engine, 22)
    for k in (8, 10):
        matrix = haar_on(engine, k)
        for count in COUNTS[:2]:
            for how in (pipeline(k, count), Pipeline()):
                EmulatedBlock(engine.launcher, matrix, tuple(range(5, 5 + k)), {}, count, how).run(amps, DOUBLE)


def profile(once, lines):
    """Figures of the kernels that the command ``once`` launches: per cent of pipes and bandwidths, occupancy."""
    base = ["ncu", "--clock-control", "none", "--csv", "--kernel-name", KERNELS, "--launch-count", "48"]
    sections = ["--section", "ComputeWorkloadAnalysis", "--section", "Occupancy", "--print-details", "all"]
    for more in (["--metrics", ",".join(METRICS.values())], sections):  # a version may lack a metric
        out = subprocess.run([*base, *more, *once], capture_output=True, text=True, check=False)
        rows = list(csv.DictReader(line for line in out.stdout.splitlines() if line.startswith('"')))
        if rows:
            break
        lines.add(part="ncu", failed=(out.stdout + out.stderr)[-1500:])
    names, launches = {metric: name for name, metric in METRICS.items()}, {}
    for row in rows:
        figures = launches.setdefault((row["ID"], row["Kernel Name"].split("(")[0], row["Grid Size"]), {})
        figures[names.get(row["Metric Name"], row["Metric Name"])] = row["Metric Value"]
    for (_, name, grid), figures in launches.items():
        lines.add(part="ncu", kernel=name, grid=grid, **figures)
