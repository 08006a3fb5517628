"""Ways to run an emulated block's chunks, in turn, bit for bit beside one stream: a part of cuda_ozaki_session.py."""

import time
from dataclasses import replace
from functools import partial

import numpy as np
from cuda_ozaki_inputs import BITS_34, DOUBLE, PARITY, build_all, haar_on, random_amps

from qsim_ozaki.bench_blocks import timer
from qsim_ozaki.cuda_ozaki import EmulatedBlock
from qsim_ozaki.cuda_ozaki_pipeline import BESIDE, Pipeline, Wgmma

QUBITS, ROUNDS = 26, 7
CASES = ((8, BITS_34), (10, PARITY), (9, BITS_34), (10, BITS_34), (8, PARITY), (9, PARITY), (7, BITS_34), (11, BITS_34))


def ways(k):
    """By name, the first is what the others are compared with."""
    whole = Pipeline({7: 16, 8: 16, 11: 0}.get(k, 8), 8)
    held = replace(whole, wgmma=Wgmma(held=True))
    found = {
        "one stream": replace(whole, streams=1),
        "not held": whole,
        "held": held,
        "held, behind": replace(whole, wgmma=Wgmma(lead=1 if k == 10 else 2, held=True)),
        "held, shorter": replace(held, chunk_amps=1 << 23),
        "held, longer": replace(held, chunk_amps=1 << 25),
        "held, longer, one stream": replace(held, chunk_amps=1 << 25, streams=1),
        "held, two streams": replace(held, streams=2),
    }
    if k == 8:
        found["held, narrow"] = replace(held, columns=8)
        found["beside"] = Pipeline(8, 2, 1 << 23, wgmma=BESIDE)  # ozaki_finish has room too
        found["beside, longer"] = Pipeline(8, 2, wgmma=BESIDE)
    if k == 10:  # ozaki_encode holds 1024 rows, and ozaki_finish too, at one block a multiprocessor
        found["held, by two"] = replace(held, columns=0, encode_depth=4)
        found["held, written by two"] = replace(held, columns=0)
        found["beside"] = Pipeline(0, 2, 1 << 23, wgmma=BESIDE)
        found["beside, longer"] = Pipeline(0, 2, wgmma=BESIDE)
    return found if k < 11 else {name: found[name] for name in ("one stream", "not held")}


def instances():
    """Every kernel's instance that the ways need."""
    return [each for k, count in CASES for how in ways(k).values() for each in how.kernels(1 << k - 7, count, DOUBLE)]


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


def one_size(engine, lines, start, k, count, held):
    """The ways of one matrix: the same bits, milliseconds, and what each part takes alone."""
    cupy, clock, rng = engine.cupy, timer(engine), np.random.default_rng(k)
    matrix, targets = haar_on(engine, k), tuple(int(q) for q in rng.permutation(QUBITS)[:k])
    amps, blocks, lined, expected = start.copy(), {}, {}, None
    for name, how in ways(k).items():
        if how.wgmma.held != held and expected is not None:
            continue
        print(f"k = {k}, {count} moduli: {name}", flush=True)  # the last one, where it does not end
        block = EmulatedBlock(engine, matrix, targets, {}, count, how)
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
    for name, block in blocks.items():
        cupy.cuda.Device().synchronize()
        begin, chunks = time.perf_counter(), block.chunks(QUBITS)
        chunks.lanes.run(len(chunks.records), block.parts(amps, DOUBLE, chunks))
        host, ms = time.perf_counter() - begin, 1e3 * np.array(seconds[name])
        lines.add(
            part="pipeline", k=k, moduli=count, way=name, ms=float(np.median(ms)), least_ms=float(ms.min()),
            **lined[name], host_ms=1e3 * host,
        )  # fmt: skip
    cupy.cuda.Device().synchronize()


def compare(engine, lines):
    """All sizes and accuracies, those that matter most first; products that hold their matrix after all others."""
    wanted = instances()
    lines.add(part="pipeline", instances=len(wanted), seconds=build_all(engine, wanted))
    start = random_amps(engine, QUBITS)
    for k, count, held in [(*case, held) for held in (False, True) for case in CASES if case[0] < 11 or not held]:
        one_size(engine, lines, start, k, count, held)
        engine.cupy.get_default_memory_pool().free_all_blocks()
