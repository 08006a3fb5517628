"""Ways to run an emulated block's chunks, in turn, bit for bit beside one stream: a part of cuda_ozaki_session.py."""

import itertools
import time
from dataclasses import replace
from functools import partial

import numpy as np
from cuda_ozaki_inputs import BITS_34, DOUBLE, PARITY, build_all, haar_on, random_amps

from qsim_ozaki import jit
from qsim_ozaki.bench_blocks import timer
from qsim_ozaki.cuda_ozaki import EmulatedBlock
from qsim_ozaki.cuda_ozaki_pipeline import Pipeline, Wgmma, pipeline

QUBITS, ROUNDS = 26, 7
SIZES, COUNTS = (8, 9, 10), (PARITY, BITS_34)
BESIDE = Wgmma(stages=3, lead=1, copier=0)  # leaves 5,632 registers of each quarter and 48 KiB of shared memory
KNOWN = ("one stream", "three streams", "alike", "longer")  # kernels that have run before
NEW = (
    "one stream",
    "behind",
    "no copier",
    "fours",
    "beside",
    "beside, shorter",
    "beside, three streams",
    "beside, whole",
    "beside, narrow",
    "beside, narrow, shorter",
)
BEHIND, FOURS = Wgmma(lead=2), Wgmma(lead=2, cluster=4)


def ways(k, count):
    """By name: the pipeline, and whether kernels divide the cache alike."""
    best = pipeline(k, count)
    whole = Pipeline(best.columns or 8, 8)
    # ozaki_encode of 256 rows fits beside the products; of more, ozaki_scale and ozaki_residues do
    two = Pipeline(0, 2)
    found = {
        "one stream": (replace(best, streams=1), False),
        "three streams": (best, False),
        "alike": (best, True),
        "behind": (replace(best, wgmma=BEHIND), True),
        "fours": (replace(best, wgmma=FOURS), True),
        "no copier": (replace(best, wgmma=Wgmma(lead=2, copier=0)), True),
        "longer": (replace(best, chunk_amps=1 << 24), True),
        "beside": (replace(two, streams=2, wgmma=BESIDE), True),
        "beside, shorter": (replace(two, streams=2, wgmma=BESIDE, chunk_amps=1 << 22), True),
        "beside, three streams": (replace(two, wgmma=BESIDE), True),
        "beside, whole": (replace(whole, encode_depth=2, wgmma=BESIDE), True),
    }
    if k == 8:
        del found["fours"]  # there are two tiles below each other
        found["beside, narrow"] = (Pipeline(8, 2, wgmma=BESIDE), True)  # ozaki_finish has room too
        found["beside, narrow, shorter"] = (Pipeline(8, 2, 1 << 22, wgmma=BESIDE), True)
    return found


class Loaded:
    """Every kernel that was loaded, and how they divide the cache."""

    def __init__(self, driver):
        self.driver, self.load, self.pointers = driver, jit.load, set()
        jit.load = self

    def __call__(self, *args):
        """`jit.load`."""
        function = self.load(*args)
        self.pointers.add(function.ptr)
        return function

    def divide(self, alike):
        """All for the most shared memory, or each as the driver finds best for it alone."""
        attribute = self.driver.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        for pointer in self.pointers:
            self.driver.funcSetAttribute(pointer, attribute, 100 if alike else -1)


def instances():
    """Every kernel's instance that the ways need."""
    out = {}
    for k in SIZES:
        for count in COUNTS:
            for how, _ in ways(k, count).values():
                depth, whole = 1 << k - 7, {"WHOLE": str(how.columns)}
                counted = DOUBLE | {"MODULI": str(count)} | whole
                wanted = [("ozaki_wgmma", how.wgmma.instance(depth) | whole)]
                wanted += [("ozaki_residues", counted), ("ozaki_encode", counted | {"DEPTH": str(depth)})]
                wanted += [("ozaki_reconstruct", {"MODULI": str(count)})]
                if how.columns:
                    wanted.append(("ozaki_finish", counted | {"DEPTH": str(depth)}))
                out.update({(name, *sorted(kind.items())): (name, kind) for name, kind in wanted})
    return [
        *out.values(),
        ("ozaki_clear", {}),
        ("ozaki_scale", DOUBLE),
        ("ozaki_commit", DOUBLE),
        ("ozaki_matrix", DOUBLE),
    ]


def one_size(engine, lines, start, loaded, k, count, names):
    """Some ways of one matrix: the same bits, milliseconds, and what its first two parts take alone."""
    cupy, clock, rng = engine.cupy, timer(engine), np.random.default_rng(k)
    matrix, targets = haar_on(engine, k), tuple(int(q) for q in rng.permutation(QUBITS)[:k])
    amps, blocks, lined = start.copy(), {}, {}
    every = ways(k, count)
    for name in filter(every.get, names):
        how, alike = every[name]
        print(f"k = {k}, {count} moduli: {name}", flush=True)  # the last one, where it does not end
        block = EmulatedBlock(engine, matrix, targets, {}, count, how)
        amps[...] = start
        redone, _ = block.run(amps, DOUBLE)
        loaded.divide(alike)
        if name == "one stream":
            expected = amps.copy()
        parts, chunks = block.parts(amps, DOUBLE, block.chunks(QUBITS)), len(block.chunks(QUBITS).records)
        encode = partial(each, parts[:1], chunks)
        products = partial(each, parts[:2], chunks)
        alone = [min(clock(step) for _ in range(3)) for step in (encode, products)]
        same = bool((amps == expected).all())
        lined[name] = {"same": same, "redone": redone, "encode_ms": 1e3 * alone[0]}
        lined[name]["products_ms"] = 1e3 * (alone[1] - alone[0])
        blocks[name] = (block, alike)
        del parts
    seconds = {name: [] for name in blocks}
    for _ in range(ROUNDS):
        for name, (block, alike) in blocks.items():
            cupy.cuda.Device().synchronize()
            loaded.divide(alike)
            seconds[name].append(clock(partial(block.run, amps, DOUBLE)))
    for name, (block, _) in blocks.items():
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        chunks = block.chunks(QUBITS)
        chunks.lanes.run(len(chunks.records), block.parts(amps, DOUBLE, chunks))
        host = time.perf_counter() - begin
        ms = 1e3 * np.array(seconds[name])
        lines.add(
            part="pipeline", k=k, moduli=count, way=name, ms=float(np.median(ms)), least_ms=float(ms.min()),
            **lined[name], host_ms=1e3 * host,
        )  # fmt: skip
    cupy.cuda.Device().synchronize()


def each(parts, chunks):
    """Parts of every chunk, on the current stream."""
    for number in range(chunks):
        for part in parts:
            part(number)


def compare(engine, lines):
    """All sizes and accuracies."""
    wanted = instances()
    lines.add(part="pipeline", instances=len(wanted), seconds=build_all(engine, wanted))
    start, loaded = random_amps(engine, QUBITS), Loaded(engine.cupy.cuda.driver)
    for names, k, count in itertools.product((KNOWN, NEW), (10, 8, 9), COUNTS):
        one_size(engine, lines, start, loaded, k, count, names)
        engine.cupy.get_default_memory_pool().free_all_blocks()
