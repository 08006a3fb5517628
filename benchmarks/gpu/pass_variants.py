"""Times variants of the straight-line tile kernels beside the product's on one GPU: the same plans, other code.

usage: pass_variants.py PLANS.pkl OUT.json [SECONDS [CIRCUIT ...]]
PLANS.pkl comes from `session.py pack`. A variant changes sizes of the package or text of its headers for this
process only; each is checked against the product on 20 qubits before it is timed on 30. Stops after SECONDS, with what
it has.
"""

import contextlib
import itertools
import json
import os
import pickle
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from qsim_ozaki import _native
from qsim_ozaki.bench.blocks.maps import random_vector
from qsim_ozaki.engines import fill
from qsim_ozaki.engines.cuda import calibrate
from qsim_ozaki.engines.cuda import engine as cuda
from qsim_ozaki.engines.cuda.codegen import straight
from qsim_ozaki.engines.cuda.device import kernels, nvrtc, shapes
from qsim_ozaki.engines.cuda.tile import layout, search
from qsim_ozaki.ir import EMPTY, HadamardPass, Kind, Op, Prepare, Relabel


@dataclass(frozen=True)
class Variant:
    """Differences from the product's kernels.

    Attributes:
        about: in words.
        patches: (text, replacement) in the headers.
        shape: changed sizes of the complex128 kernel.
        names: values of names, as (module, name, value).
        blocks: on one processor.
        plans: which plans it runs.
    """

    about: str
    patches: tuple = ()
    shape: dict = field(default_factory=dict)
    names: tuple = ()
    blocks: int = 2
    plans: str = "moves"


VARIANTS = {
    "product": Variant("as the package has it"),
    "no pairs": Variant("no matrices by tensor cores", names=((straight, "has_pairs", lambda *_: False),)),
    "more pairs": Variant(
        "blocks and exchanges at their energy alone",
        names=((search, "STAGE_ENERGIES", {"double": _native.StageEnergies(171, 238, 100, 100, 86)}),),
    ),
    "three registers": Variant("8 amplitudes a thread, 512 threads", shape={"register_qubits": 3}),
    "short": Variant("passes cut at 6500 instructions", names=((straight, "MAX_INSTRUCTIONS", {"double": 6500}),)),
    "long": Variant("passes cut at 14000 instructions", names=((straight, "MAX_INSTRUCTIONS", {"double": 14000}),)),
    "tile of 11": Variant(
        "tiles of 11 qubits, four blocks of 128 threads",
        shape={"tile_qubits": 11},
        names=((straight, "ROOM", dict.fromkeys(straight.ROOM, 57344)),),
        blocks=4,
        plans="tile11",
    ),
}


@contextlib.contextmanager
def active(variant):
    """The package with ``variant`` in place."""
    kept = []

    def put(owner, name, value):
        kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    with tempfile.TemporaryDirectory() as folder:
        if variant.patches:
            for header in kernels.SOURCES.rglob("*.cu*"):
                text = header.read_text()
                for old, new in variant.patches:
                    text = text.replace(old, new)
                target = Path(folder) / header.relative_to(nvrtc.SOURCES)
                target.parent.mkdir(exist_ok=True)
                target.write_text(text)
            put(nvrtc, "SOURCES", Path(folder))
        for owner, name, value in variant.names:
            put(owner, name, value)
        shape = shapes.GENERATED["double"]
        shapes.GENERATED["double"] = replace(shape, **variant.shape)
        put(straight, "blocks", lambda architecture: variant.blocks)
        nvrtc.sources_hash.cache_clear()
        try:
            yield
        finally:
            shapes.GENERATED["double"] = shape
            for owner, name, value in reversed(kept):
                setattr(owner, name, value)
            nvrtc.sources_hash.cache_clear()


def programs_of(steps, n):
    """Generated kernels of all passes of a plan, and the product states between them."""
    for step in steps:
        if isinstance(step, Prepare):
            yield step
        elif not isinstance(step, Relabel):
            ops = [Op(Kind.HADAMARD, step.qubits, EMPTY)] if isinstance(step, HadamardPass) else step.ops
            tile = layout.Tile(
                step.qubits,
                getattr(step, "zero_qubits", ()),
                getattr(step, "swaps", ()),
                getattr(step, "fresh_qubits", ()),
            )
            yield from straight.straight(tile, ops, n, "double", straight.has_pairs(90))


def compiled(engine, programs):
    """Launches of ``programs`` on a state, compiled on all cores, and how many kernels spill."""
    options = nvrtc.nvrtc_options(
        kernels.STRAIGHT,
        straight.instance(engine.launcher.architecture, "double"),
        engine.launcher.architecture,
    )
    sources = sorted({p.source for p in programs if not isinstance(p, Prepare)})
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        cubins = dict(zip(sources, pool.map(lambda s: nvrtc.compile_generated(s, options), sources), strict=True))
    spills = sum(nvrtc.spilled_bytes(c.log) > 0 for c in cubins.values())
    functions = {source: nvrtc.function(c.code, kernels.STRAIGHT.function) for source, c in cubins.items()}
    launches = []
    for program in programs:
        if isinstance(program, Prepare):
            launches.append(partial(engine.run_step, step=program))
            continue
        tables, record = engine.launcher.cupy.asarray(program.tables), straight.arguments(program, "double")
        shared = straight.shared_bytes(
            program, straight.ROOM[engine.launcher.architecture] - straight.STATIC_BYTES, "double"
        )
        blocks = min(program.num_tiles, engine.launcher.num_processors * straight.blocks(engine.launcher.architecture))
        threads = 1 << (len(program.tile) - shapes.GENERATED["double"].register_qubits)

        def launch(
            state, function=functions[program.source], tables=tables, record=record, size=(blocks, threads, shared)
        ):
            arguments = (state.amps, tables, state.new_tickets(), record)
            engine.launcher.launch_function(function, size[0], size[1], arguments, size[2])

        launches.append(launch)
    return launches, spills


def in_program_order(engine, state, position):
    """The vector with program qubit q on bit q."""
    n = state.num_qubits
    axes = [n - 1 - position[n - 1 - a] for a in range(n)]
    return engine.vector(state).reshape((2,) * n).transpose(axes).reshape(-1)


def measure(engine, state, variant, plans, circuit, wanted):
    """One row: the error on 20 qubits, milliseconds of each launch and of all on 30."""
    with active(variant):
        steps, position = plans[variant.plans, circuit, 20]
        small = engine.load(random_vector(20, 1), "double")
        launches, _ = compiled(engine, list(programs_of(steps, 20)))
        for launch in launches:
            launch(small)
        got = in_program_order(engine, small, position)
        wanted.setdefault(circuit, got)
        launches, spills = compiled(engine, list(programs_of(plans[variant.plans, circuit, 30][0], 30)))

        def run():
            for launch in launches:
                launch(state)

        total = calibrate.event_seconds(engine.launcher.cupy, run, 5)
        parts = [1e3 * calibrate.event_seconds(engine.launcher.cupy, partial(launch, state), 1) for launch in launches]
    return {
        "ms": round(1e3 * total, 2),
        "launches": [round(p, 2) for p in parts],
        "kernels_with_spills": spills,
        "distance_to_product": float(np.linalg.norm(got - wanted[circuit])),
    }


def main():
    """All variants of the circuits named, the product first; a failing one does not end the others."""
    plans = pickle.loads(Path(sys.argv[1]).read_bytes())["variants"]
    seconds, names = float(sys.argv[3]) if len(sys.argv) > 3 else 300.0, sys.argv[4:]
    circuits = names or sorted({circuit for _, circuit, _ in plans})
    engine = cuda.create()
    state = engine.allocate(30, "double")
    fill(engine.launcher.cupy, state.amps, 1)
    record = {
        "card": engine.launcher.device_name,
        "pass_ms": 1e3 * calibrate.pass_seconds(engine.launcher, state),
        "rows": [],
    }
    wanted, start = {}, time.time()
    for (name, variant), circuit in itertools.product(VARIANTS.items(), circuits):
        if time.time() - start > seconds:
            break
        try:
            row = measure(engine, state, variant, plans, circuit, wanted)
        except Exception as error:
            row = {"failed": repr(error)[:500]}
        record["rows"].append({"variant": name, "circuit": circuit, **row})
        print(name, circuit, row, flush=True)
        Path(sys.argv[2]).write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
