"""Constants that were measured on one machine: an NVIDIA H200, 2026-11 (`benchmarks/h200_passes.md`, `h200_blocks.md`).

In: nothing. Out: thresholds and energies. It may not hold sizes that follow from an architecture or from a kernel's
source: these are beside the code that needs them.
"""

from __future__ import annotations

import qsim_ozaki._native as _native

# --- Tile passes: when a specialised kernel is worth compiling
BLOCKS_PER_PROCESSOR = 2  # as many as registers allow; a block fetches its next tile during its arithmetic
ONCE_QUBITS = 26  # from this width on, a pass takes half a millisecond or more: its source is generated at once
# From this width on, the source of the passes of a further row of parameters is generated at once. On smaller states,
# generating their source takes the host longer than it saves the GPU (28 qubits, a row of Trotter: generated 36 ms,
# interpreted 31; of EfficientSU2: 26 and 21).
ROW_QUBITS = 29
REPEAT_QUBITS = 18  # below, a launch costs as much as the pass
# Runs of a pass on a smaller state before its source is generated: generating takes the host tens of milliseconds, and
# saves each run less than one.
RUNS_BEFORE_COMPILING = 4

# --- Generated kernels
# In a longer pass every instruction is slower (an instruction has 16 bytes, the cache 128 KiB), so that one more pass
# costs about as much. Longer passes of complex64, which has half the registers, would spill.
MAX_INSTRUCTIONS = {"double": 9000, "single": 8500}
BRIEF_QUBITS = 24  # a pass over at most as many qubits takes less than a tenth of a thorough search

# --- Energy model of a tile pass, in picojoules per amplitude (an FP64 FMA takes 38, a product 21).
# Exchanges and blocks take more time than their energy over the card's power: their constants stand for their time, in
# units in which an FP64 instruction takes 38.
EXCHANGE = 300.0
BLOCK = 310.0  # a matrix on two qubits by tensor cores
TABLE = 100.0  # a table of phases: a complex product, less the part that merges with other products
OUTER = 100.0  # added to TABLE if qubits that number threads or tiles choose from the table
ROTATION = 76.0  # two FMA
FLIP = 5.0
CORE = 228.0  # with a table of its own
SHARED = 86.0  # saved by two cores that share a table
MATRIX = {1: 270.0, 2: 574.0, 3: 1182.0, 4: 2398.0, 5: 4830.0}  # by qubits
PHASE_OF_ROTATION = 80.0  # a rotation's usual share of tables and exchanges
STAGE_ENERGIES = {
    "double": _native.StageEnergies(EXCHANGE, BLOCK, TABLE, OUTER, SHARED),
    # In single precision the number of instructions counts, 38 per instruction: a block takes three products of TF32
    # and the instructions that split its operands.
    "single": _native.StageEnergies(EXCHANGE, 600.0, 150.0, OUTER, SHARED),
}

# --- Cost model
# The share of a tile pass's memory time that overlaps with its arithmetic: the card's power bounds the sum of both.
OVERLAP = 0.3
BLOCK_OVERLAP = 0.8  # this share for a matrix product on tensor cores
# The rate of consecutive passes of a circuit, at the limit of the card's power, over the rate of a single pass: in
# double precision Trotter 6.3, EfficientSU2 7.9, random circuits and quantum volume 8.2 of 10.0 T/s, in single 8.0 of
# 8.75. The slowest family is used: with a rate too high, plans from |0...0> postpone too much work.
SUSTAINED = {"double": 0.65, "single": 0.91}

# --- Matrices by a library's product
LARGEST_PART = 1 << 26  # amplitudes, a GiB in complex128: parts of 2^21, which stay in L2, take 4 % longer
MEMORY_SHARE = 4  # a part takes at most a quarter of the free bytes: two parts leave half to the library
# Matrices on fewer qubits use four products: memory bounds their time, and four products keep exact zeros.
LEAST_QUBITS_OF_THREE = 7

# --- Emulated matrices
REPLAYED_AMPS = 1 << 22  # 22 qubits: a run takes the GPU as long as the host, and 256 MiB of workspace
CHUNK_AMPS = 1 << 24  # smaller chunks stay in L2, but their launches and launch tails cost more than that saves
LONG_CHUNK_AMPS = 1 << 25
LONG_MODULI = 9  # with at most as many moduli, the workspaces of the long chunk take little more than others: 2.3 GiB
# Columns of ozaki_finish, by qubits of the matrix; on other matrices ozaki_finish does not write back faster.
FINISHED = {7: 16, 8: 16, 9: 8, 10: 8}
