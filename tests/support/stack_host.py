"""Runs `kernels/cuda/state/stack.cu` on the host: compiled over `cuda_on_host.hpp`, one std::thread per thread."""

import subprocess
from pathlib import Path

import numpy as np
from support.straight_host import compiler, copy_sources

from qsim_ozaki.engines.cuda import stack

HERE = Path(__file__).parent
MAIN = """
#include "cuda_on_host.hpp"
#include "state/stack.cu"
int main(int, char** argv) {
    const auto blocks = read<StackBlock>("blocks");
    const auto steps = read<StackStep>("steps");
    const auto data = read<amp_t>("data"), values = read<amp_t>("values");
    const auto sources = read<unsigned>("sources");
    std::vector<amp_t> out(std::atoi(argv[1]));
    launch(blocks.size(), kStackThreads, [&] {
        stack_run(blocks.data(), steps.data(), data.data(), sources.data(), values.data(), out.data());
    });
    std::FILE* file = std::fopen("out", "wb");
    std::fwrite(out.data(), sizeof(amp_t), out.size(), file);
    std::fclose(file);
}
"""


def build(folder, precision):
    """Compiles the kernel once for `run`."""
    copy_sources(folder / "kernels")
    (folder / "main.cpp").write_text(MAIN)
    macro = f"-DQSIM_REAL={'double' if precision == 'double' else 'float'}"
    command = [compiler(), "-std=c++20", "-O1", "-w", "-pthread", f"-I{HERE}", f"-I{folder / 'kernels'}", macro]
    subprocess.run([*command, str(folder / "main.cpp"), "-o", str(folder / "stack")], check=True)


def run(works, folder, precision):
    """The states of each work's rows, ``(rows, 2**num_qubits)``."""
    tables = stack.stack_tables(works)
    kind = np.complex128 if precision == "double" else np.complex64
    for name in ("blocks", "steps", "sources"):
        getattr(tables, name).tofile(folder / name)
    for name in ("data", "values"):
        getattr(tables, name).astype(kind).tofile(folder / name)
    subprocess.run([str(folder / "stack"), str(tables.num_amps)], check=True, cwd=folder)
    return stack.split_rows(np.fromfile(folder / "out", kind), works)
