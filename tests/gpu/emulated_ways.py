"""An emulated block's own way beside one stream, bit for bit: a part of emulated_session.py."""

from dataclasses import replace
from functools import partial

import numpy as np
from emulated_inputs import BITS_34, PARITY, build_all, haar_on, random_amps

from qsim_ozaki.bench.blocks.maps import timer
from qsim_ozaki.engines.cuda.device.kernels import DOUBLE
from qsim_ozaki.engines.cuda.ozaki.block import EmulatedBlock
from qsim_ozaki.engines.cuda.ozaki.pipeline import pipeline

QUBITS, ROUNDS = 26, 7
CASES = ((8, BITS_34), (10, PARITY), (9, BITS_34), (10, BITS_34), (8, PARITY), (9, PARITY), (7, BITS_34), (11, BITS_34))


def ways(k, count):
    """By name, the first is what the other is compared with."""
    own = pipeline(k, count)
    return {"one stream": replace(own, streams=1), "own": own}


def alone(engine, block, amps):
    """Milliseconds of each part of all chunks by itself, on one stream."""
    chunks, clock = block.chunks(QUBITS), timer(engine)
    parts = block.parts(amps, DOUBLE, chunks)

    def each(upto):
        for number in range(len(chunks.records)):
            for part in parts[:upto]:
                part(number)

    sums = [0.0, *(1e3 * min(clock(partial(each, upto)) for _ in range(3)) for upto in (1, 2, 3))]
    return {f"{name}_ms": sums[i + 1] - sums[i] for i, name in enumerate(("encode", "products", "write_back"))}


def one_size(engine, lines, start, k, count):
    """The ways of one matrix: the same bits, milliseconds, and what each part takes alone."""
    clock, rng = timer(engine), np.random.default_rng(k)
    matrix, targets = haar_on(engine, k), tuple(int(q) for q in rng.permutation(QUBITS)[:k])
    amps, blocks, lined, expected = start.copy(), {}, {}, None
    for name, how in ways(k, count).items():
        print(f"k = {k}, {count} moduli: {name}", flush=True)  # the last one, where it does not end
        block = EmulatedBlock(engine.launcher, matrix, targets, {}, count, how)
        amps[...] = start
        redone, _ = block.run(amps, DOUBLE)
        expected = amps.copy() if expected is None else expected
        lined[name] = {"chunk": how.chunk_amps.bit_length() - 1, "same": bool((amps == expected).all())}
        lined[name] |= {"redone": redone} | alone(engine, block, amps)
        blocks[name] = block
    seconds = {name: [] for name in blocks}
    for _ in range(ROUNDS):
        for name, block in blocks.items():
            seconds[name].append(clock(partial(block.run, amps, DOUBLE)))
    for name, times in seconds.items():
        ms = 1e3 * np.array(times)
        lines.add(
            part="pipeline", k=k, moduli=count, way=name, ms=float(np.median(ms)), least_ms=float(ms.min()),
            **lined[name],
        )  # fmt: skip


def compare(engine, lines):
    """All sizes and accuracies, those that matter most first."""
    wanted = [
        each for k, count in CASES for how in ways(k, count).values() for each in how.kernels(1 << k - 7, count, DOUBLE)
    ]
    lines.add(part="pipeline", instances=len(wanted), seconds=build_all(engine, wanted))
    start = random_amps(engine, QUBITS)
    for k, count in CASES:
        one_size(engine, lines, start, k, count)
        engine.launcher.cupy.get_default_memory_pool().free_all_blocks()
