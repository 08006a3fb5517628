"""Runs generated tile passes on the host: compiled over `cuda_on_host.hpp`, one thread per thread."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np

from qsim_ozaki.engines.cuda.codegen import straight
from qsim_ozaki.engines.cuda.device import kernels, shapes

HERE = Path(__file__).parent
MAIN = """
#include "cuda_on_host.hpp"
#include "pass.cu"
int main(int, char** argv) {
    auto state = read<amp_t>("state"), tables = read<amp_t>("tables");
    index_t tickets = 0;
    auto args = read<Args>("args");
    const index_t* words = (const index_t*)tables.data();
    launch(std::atoi(argv[1]), kThreads, [&] { tile_straight(state.data(), words, &tickets, args[0]); });
    std::FILE* file = std::fopen("state", "wb");
    std::fwrite(state.data(), sizeof(amp_t), state.size(), file);
    std::fclose(file);
}
"""
REPLACED = (
    (r'asm volatile\("cp\.async\.(commit|wait)_group[^"]*"[^;]*;', ""),
    (
        r'asm volatile\("cp\.async\.c[^;]*?;"[^;]*nothing[^;]*;',
        "if (nothing) std::memset(::shared + shared_at, 0, sizeof *from); else "
        "std::memcpy(::shared + shared_at, from, sizeof *from);",
    ),
    (r'asm volatile\("cp\.async\.c[^;]*?;"[^;]*;', "std::memcpy(::shared + shared_at, from, sizeof *from);"),
    (r'asm volatile\("cp\.async\.wait_all;"[^;]*;', ""),
    (r'asm volatile\(\s*"mma\.sync[^;]*;"[^;]*;', "warp_mma(c, a, b);"),
    (r'asm volatile\("" : "\+r"[^;]*;', ""),
    (r'asm volatile\("ld\.global[^;]*?;"[^;]*;', "v = *p;"),
    (r'asm volatile\("st\.global[^;]*?;"[^;]*;', "*p = v;"),
    (r"extern __shared__ [^;]*?(\w+) shared\[\];", r"auto* shared = reinterpret_cast<\1*>(::shared);"),
    (r"__shared__ index_t", "static index_t"),
)


def compiler():
    """The C++ compiler, or None."""
    return shutil.which("g++") or shutil.which("clang++")


def copy_sources(folder):
    """The kernels' files with what only a GPU knows replaced."""
    for file in kernels.SOURCES.rglob("*.cu*"):
        text = file.read_text()
        for pattern, replacement in REPLACED:
            text = re.sub(pattern, replacement, text)
        target = folder / file.relative_to(kernels.SOURCES)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def run(program, state, precision, folder, early=6, blocks=3):
    """The state after one pass of ``program``."""
    copy_sources(folder / "kernels")
    (folder / "pass.cu").write_text(program.source)
    (folder / "main.cpp").write_text(MAIN)
    real = "double" if precision == "double" else "float"
    shape = shapes.GENERATED[precision]
    columns = (1 << shape.register_qubits) + early
    room = columns * shape.column_bytes(len(program.tile)) + program.table_bytes
    room += 2 * program.tile_phases * shape.amp_bytes
    macros = [
        f"-DQSIM_REAL={real}",
        f"-DQSIM_ROOM={room}",
        "-DQSIM_BLOCKS=2",
        f"-DQSIM_REGISTERS={shape.register_qubits}",
    ]
    command = [compiler(), "-std=c++20", "-O1", "-w", "-pthread", f"-I{HERE}", f"-I{folder / 'kernels'}", *macros]
    subprocess.run([*command, str(folder / "main.cpp"), "-o", str(folder / "pass")], check=True)
    state.astype(np.complex128 if precision == "double" else np.complex64).tofile(folder / "state")
    program.tables.tofile(folder / "tables")
    straight.arguments(program, precision).tofile(folder / "args")
    subprocess.run([str(folder / "pass"), str(min(blocks, program.num_tiles))], check=True, cwd=folder)
    return np.fromfile(folder / "state", np.complex128 if precision == "double" else np.complex64)
