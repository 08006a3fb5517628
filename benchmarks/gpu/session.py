"""One command for a GPU machine without Qiskit: tests, comparisons, large states, sanitizers, times and variants.

usage: session.py pack FOLDER                       (here: plans of all circuits, and the LACKING modules, into FOLDER)
       session.py run FOLDER OUT [SECONDS [PART ...]]   (there: everything, at most SECONDS, 590 if not given)
FOLDER may lie in an ignored place of the checkout. Each part is a process of its own with its own limit: those that
time nothing run first, side by side, the others alone. What a part printed is in OUT/PART.log, its numbers in
OUT/PART.json as far as it came, and a table of the lines at the end.
"""

import importlib.util
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = (11, 12, 20, 30)  # 11 and 12 are checked against NumPy, 20 against the CPU engine, 30 is timed
LACKING = ("cachetools", "platformdirs")  # of what the package imports, on the GPU machine
VARIED = ("quantum_volume", "random_20", "trotter_10", "efficient_su2", "qft")


@dataclass(frozen=True)
class Line:
    """One line of the table, in milliseconds at 30 qubits or in passes at 28.

    Attributes:
        must: what was asked for.
        before: measured on an NVIDIA H200, 2026-11-30; the worst targets of a block.
    """

    must: float
    before: float


CIRCUITS = {
    ("hadamard", False): Line(30, 27.5),
    ("hadamard", True): Line(6, 3.88),
    ("hadamard_rz_10", False): Line(32, 27.8),
    ("qft", False): Line(45, 35.6),
    ("random_20", False): Line(140, 140),
    ("trotter_10", False): Line(80, 92.7),
    ("efficient_su2", False): Line(45, 48.1),
    ("quantum_volume", False): Line(260, 225),
}
BLOCKS = {
    5: Line(1.3, 1.12),
    6: Line(1.8, 1.35),
    7: Line(3.0, 2.48),
    8: Line(5.5, 4.74),
    9: Line(10.5, 9.35),
    10: Line(20, 19.7),
}
TESTS = "tests/engines tests/bench/test_founding.py"
# part: (seconds at most, arguments after the interpreter; {data} is the folder, {out} the part's JSON file, {workers}
# are those of pytest where it can have several)
PARTS = {
    "tests": (150, "-m pytest -q -p no:cacheprovider {workers} -m cuda " + TESTS),
    "kernels": (100, "tests/gpu/every_kernel.py"),
    "memcheck": (150, "tests/gpu/every_kernel.py fast"),
    "racecheck": (150, "tests/gpu/every_kernel.py fast"),
    "random": (160, "tests/gpu/random_circuits.py 500 26 150"),
    "circuits": (130, "benchmarks/gpu/single_steps.py {data}/plans.pkl {out} check rates circuits"),
    "large": (60, "benchmarks/gpu/single_steps.py {data}/plans.pkl {out} sample large"),
    "dense": (60, "benchmarks/gpu/single_steps.py {data}/plans.pkl {out} dense passes"),
    "variants": (150, "benchmarks/gpu/pass_variants.py {data}/variants.pkl {out} 140"),
    "profile": (60, "benchmarks/gpu/pass_variants.py {data}/variants.pkl {out} 1 random_20"),
}
TOGETHER = ("tests", "kernels", "memcheck", "racecheck", "random")  # nothing is timed in them
CALIBRATE = "from qsim_ozaki.engines import select; print(select('cuda').device())"  # while the GPU is not shared
SECTIONS = ("SpeedOfLight", "WarpStateStats", "Occupancy", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis")
TOOLS = {
    "memcheck": ("compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "9"),
    "racecheck": ("compute-sanitizer", "--tool", "racecheck", "--error-exitcode", "9"),
    "profile": (
        *(
            "ncu",
            "--clock-control",
            "none",
            "--kernel-name",
            "tile_straight",
            "--launch-skip",
            "10",
            "--launch-count",
            "4",
        ),
        *(f"--section={name}" for name in SECTIONS),
    ),
}


def pack(folder):
    """Plans of the benchmark circuits and of the variants, and the modules that the GPU machine lacks."""
    from dataclasses import replace

    from pack_plans import H200, circuits

    from qsim_ozaki.lowering import lower
    from qsim_ozaki.planner import PlanOptions, plan

    folder.mkdir(parents=True, exist_ok=True)
    devices = {"moves": H200, "tile11": replace(H200, tile_qubits=11)}
    plans, variants = {}, {}
    for n in WIDTHS:
        for name, circuit in circuits(n):
            (ops,) = lower(circuit).body
            for precision in ("double", "single"):
                for zero in (False, True):
                    p = plan(ops, n, H200, PlanOptions(precision=precision, from_zero=zero))
                    forecast = p.prediction
                    row = (p.steps, forecast.seconds, forecast.passes, ops, p.final_position)
                    plans[name, n, precision, zero] = row
            if n >= 20 and name in VARIED:
                for kind, device in devices.items():
                    p = plan(ops, n, device, PlanOptions())
                    variants[kind, name, n] = (p.steps, p.final_position)
    (folder / "plans.pkl").write_bytes(pickle.dumps(plans))
    (folder / "variants.pkl").write_bytes(pickle.dumps({"variants": variants}))
    for name in LACKING:
        package = Path(importlib.util.find_spec(name).origin).parent
        shutil.copytree(package, folder / "extra" / name, dirs_exist_ok=True)
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    print(f"{len(plans)} plans, {len(variants)} of variants, {size / 1e6:.1f} MB in {folder}")


def build(site, log):
    """A package in ``site`` from the checkout, with the extension built for this interpreter."""
    package = site / "qsim_ozaki"
    shutil.copytree(ROOT / "qsim_ozaki", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for name in ("kernels", "circuits"):
        shutil.copytree(ROOT / name, package / name)
    nanobind = subprocess.check_output([sys.executable, "-m", "nanobind", "--cmake_dir"], text=True).strip()
    options = [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind}", "-DCMAKE_BUILD_TYPE=Release"]
    work = site / "build"
    for command in (
        ["cmake", "-S", str(ROOT / "kernels" / "native"), "-B", str(work), "-G", "Ninja", *options],
        ["cmake", "--build", str(work), "--parallel", str(os.cpu_count())],
    ):
        subprocess.run(command, check=True, stdout=log, stderr=log, timeout=240)
    for library in work.glob("_native*.so"):
        shutil.copy(library, package)


def run_part(name, data, out, environment, seconds):
    """One part; returns its exit status or why there is none, and how long it took."""
    limit, arguments = PARTS[name]
    workers = "-n 8" if importlib.util.find_spec("xdist") else ""
    arguments = arguments.format(data=data, out=out / f"{name}.json", workers=workers).split()
    tool, begin = TOOLS.get(name, ()), time.time()
    if tool and not shutil.which(tool[0]):
        return "no " + tool[0]
    with (out / f"{name}.log").open("w") as log:
        command = [*tool, sys.executable, "-P", "-W", "ignore", *arguments]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            code = process.wait(min(limit, seconds))
        except subprocess.TimeoutExpired:
            code = "out of time"
            os.killpg(process.pid, signal.SIGKILL)  # with what it started: the next part may be timed
            process.wait()
    return f"{code}, {time.time() - begin:.0f} s"


def run(data, out, seconds, names):
    """All parts while there is time, those that time nothing side by side; the state of each and the table."""
    start = time.time()
    out.mkdir(parents=True, exist_ok=True)
    site = Path(tempfile.gettempdir()) / "qsim_site"
    shutil.rmtree(site, ignore_errors=True)
    helpers = ("tests/gpu", "tests/support", "tests", "benchmarks/gpu")
    paths = (site, data / "extra", *(ROOT / folder for folder in helpers))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONUNBUFFERED": "1"}
    environment["XDG_CACHE_HOME"] = str(site / "cache")
    with (out / "build.log").open("w") as log:
        build(site, log)
        command = [sys.executable, "-P", "-W", "ignore", "-c", CALIBRATE]
        subprocess.run(command, check=True, env=environment, stdout=log, stderr=log, timeout=120)
    status = {"build": f"{time.time() - start:.0f} s"}
    groups = [[name for name in names if name in TOGETHER], *([name] for name in names if name not in TOGETHER)]
    for group in filter(None, groups):
        left = seconds - (time.time() - start)
        if left < 10:
            status |= dict.fromkeys(group, "not started: no time")
            continue
        one = partial(run_part, data=data, out=out, environment=environment, seconds=left)
        with ThreadPoolExecutor(len(group)) as pool:
            status |= dict(zip(group, pool.map(one, group), strict=True))
        for name in group:
            print(name, status[name], flush=True)
            text = (out / f"{name}.log").read_text(errors="replace") if (out / f"{name}.log").is_file() else ""
            print("\n".join("   " + line[:160] for line in text.strip().splitlines()[-3:]), flush=True)
        (out / "status.json").write_text(json.dumps(status, indent=1))
    report(out)


def rows_of(out, name):
    """Rows of a part's record, none where it has not come so far."""
    file = out / f"{name}.json"
    return json.loads(file.read_text())["rows"] if file.is_file() else []


def report(out):
    """Lines with what was asked, measured before and measured now, and the variants' times."""
    print(f"{'line':28} {'must':>7} {'before':>7} {'now':>7} {'complex64':>9}")
    times = {
        (r["circuit"], r["from_zero"], r["precision"]): 1e3 * r["seconds"]
        for r in rows_of(out, "circuits")
        if r.get("section") == "circuit" and "seconds" in r
    }
    for (name, zero), line in CIRCUITS.items():
        now, half = times.get((name, zero, "double")), times.get((name, zero, "single"))
        ratio = f"{half / now:9.2f}" if now and half else " " * 9
        title = name + (" of a product state" if zero else "")
        shown = f"{now:7.1f}" if now else "      -"
        print(f"{title:28} {line.must:7.4g} {line.before:7.4g} {shown} {ratio}")
    blocks = [r for r in rows_of(out, "dense") if r.get("section") == "dense" and r["precision"] == "double"]
    for k, line in BLOCKS.items():
        now = [r["passes"] for r in blocks if r["k"] == k]
        shown = f"{min(now):.2f}-{max(now):.2f}" if now else "-"
        print(f"{f'dense k={k}, passes':28} {line.must:7.4g} {line.before:7.4g} {shown:>10}")
        emulated = [r["passes"] for r in rows_of(out, "dense") if r.get("section") == "emulated" and r["k"] == k]
        if emulated:
            print(f"{'  by 15 moduli':28} {line.must:7.4g} {'':7} {min(emulated):.2f}-{max(emulated):.2f}")
    for r in rows_of(out, "variants"):
        spills = f" {r['kernels_with_spills']} kernels spill" if r.get("kernels_with_spills") else ""
        shown = r.get("failed") or f"{r['ms']} ms, distance {r['distance_to_product']:.1g}{spills}"
        print(f"{r['variant']:18} {r['circuit']:16} {shown}")


def main():
    """Packs, or runs."""
    action, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    if action == "pack":
        pack(folder)
    else:
        out, rest = Path(sys.argv[3]).resolve(), sys.argv[4:]
        run(folder, out, float(rest[0]) if rest else 590.0, rest[1:] or list(PARTS))


if __name__ == "__main__":
    main()
