"""Constants that were measured on one machine: an NVIDIA H200, 2026-11 (`benchmarks/h200_passes.md`, `h200_blocks.md`).

In: nothing. Out: thresholds and energies. Sizes that follow from an architecture or from a kernel's source stay beside
the code that needs them.
"""

from __future__ import annotations

import qsim_ozaki._native as _native

# --- Tile passes: when a specialised kernel is worth compiling
BLOCKS_PER_PROCESSOR = 2  # as many as registers allow; each block then fetches its next tile behind its arithmetic
ONCE_QUBITS = 26  # a pass takes half a millisecond and more: compile as soon as it is seen
# For a row of parameters: below, generating the source of its passes takes the host longer than it saves the GPU
# (28 qubits, a row of Trotter: generated 36 ms, interpreted 31; of EfficientSU2: 26 and 21).
ROW_QUBITS = 29
REPEAT_QUBITS = 18  # below, a launch costs as much as the pass
# Runs of a pass on a smaller state before its source is generated: generating takes the host tens of milliseconds, and
# saves each run less than one.
RUNS_BEFORE_COMPILING = 4

# --- Generated kernels
# A longer pass is slower for each instruction (16 bytes each, in a cache of 128 KiB), a pass more costs as much;
# complex64, with half the registers, would spill beyond.
MAX_INSTRUCTIONS = {"double": 9000, "single": 8500}
BRIEF_QUBITS = 24  # of the qubits a pass touches, up to which it takes less than a tenth of a search for good stages

# --- Energy model of a tile pass, in picojoules an amplitude (an FP64 FMA 38, a product 21). Launches take longer for
# exchanges and blocks than their energy at the card's power: these count what their time is worth, 38 for an FP64
# instruction's.
EXCHANGE = 300.0
BLOCK = 310.0  # a matrix on two qubits by tensor cores
TABLE = 100.0  # a complex product, less what merges with others
OUTER = 100.0  # more where other threads' qubits choose from it
ROTATION = 76.0  # two FMA
FLIP = 5.0
CORE = 228.0  # with a table of its own
SHARED = 86.0  # saved by two cores that share a table
MATRIX = {1: 270.0, 2: 574.0, 3: 1182.0, 4: 2398.0, 5: 4830.0}  # by qubits
PHASE_OF_ROTATION = 80.0  # a rotation's usual share of tables and exchanges
STAGE_ENERGIES = {
    "double": _native.StageEnergies(EXCHANGE, BLOCK, TABLE, OUTER, SHARED),
    # In single precision instructions count, 38 each: of a block three products of TF32, and the splitting for them.
    "single": _native.StageEnergies(EXCHANGE, 600.0, 150.0, OUTER, SHARED),
}

# --- Cost model
# Share of a tile pass's memory time that its arithmetic hides: a card's power bounds their sum.
OVERLAP = 0.3
BLOCK_OVERLAP = 0.8  # the same of a matrix product on tensor cores
# Rates of circuits' passes, one after another at the limit of a card's power, over the rate of one pass run alone: in
# double precision Trotter 6.3, EfficientSU2 7.9, random circuits and quantum volume 8.2 of 10.0 T/s, in single 8.0 of
# 8.75. The slowest counts: with too high a rate, plans from |0...0> do too much late.
SUSTAINED = {"double": 0.65, "single": 0.91}

# --- Matrices by a library's product
LARGEST_PART = 1 << 26  # amplitudes, a GiB in complex128: parts of 2^21, that stay in L2, take 4 % longer
MEMORY_SHARE = 4  # a part takes at most one in so many of the free bytes: two parts leave half to the library
LEAST_QUBITS_OF_THREE = 7  # memory bounds smaller matrices, whose exact zeros four products keep

# --- Emulated matrices
REPLAYED_AMPS = 1 << 22  # 22 qubits: a run takes the GPU as long as the host, and 256 MiB of workspace
CHUNK_AMPS = 1 << 24  # with fewer, launches and their tails cost more than is saved by what stays in the L2
LONG_CHUNK_AMPS = 1 << 25
LONG_MODULI = 9  # up to which workspaces of the long chunk take little more than others do: 2.3 GiB
FINISHED = {7: 16, 8: 16, 9: 8, 10: 8}  # by qubits of the matrix: columns of ozaki_finish where it writes back faster
