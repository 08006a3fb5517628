"""Compares the CUDA engine with the CPU engine on random circuits in complex128, each as its engine plans it.

usage: random_circuits.py [COUNT [MAX_QUBITS [SECONDS]]]
Most circuits have 10 to 20 qubits, every 25th MAX_QUBITS or up to 2 fewer. Every sixth runs as straight-line kernels,
compiled while others run; the rest as the engine chooses. Every fourth starts from |0...0>, on memory full of an
earlier state's numbers; the others from a random state. Prints how far it is, the worst distance ||cuda - cpu|| and
how many circuits it did where SECONDS (default: no limit) are over; fails above 1e-12.
"""

import math
import sys
import time
from dataclasses import dataclass

import numpy as np
from random_gates import gate

from qsim_ozaki.bench.gpu.state import distance, run_steps
from qsim_ozaki.engines import fill, select
from qsim_ozaki.engines.cuda import engine, passes
from qsim_ozaki.planner import Plan, PlanOptions, plan

LIMIT = 1e-12
GROUP = 25  # circuits drawn at a time: kernels of the group are compiled while its other circuits run


@dataclass(frozen=True, eq=False)
class Circuit:
    """One circuit and how each engine runs it."""

    number: int
    num_qubits: int
    straight: bool
    on_gpu: Plan
    on_cpu: Plan


def draw(number, widest, devices):
    """Circuit ``number``: the same whatever was drawn before."""
    rng = np.random.default_rng(number)
    wide, straight = number % 25 == 24, number % 6 == 0
    if wide:
        n = int(rng.integers(max(widest - 2, 10), widest + 1))
    else:
        n = int(rng.integers(passes.REPEAT_QUBITS if straight else 10, 21))
    ops = [gate(rng, n, 5 if straight else 7) for _ in range(int(rng.integers(10, 30 if wide else 60)))]
    # where the order need not be restored, passes move qubits
    options = PlanOptions(restore_order=number % 5 == 0, from_zero=number % 4 == 3)
    return Circuit(number, n, straight, *(plan(ops, n, device, options) for device in devices))


def apart(gpu, cpu, circuit):
    """||cuda - cpu|| from |0...0>, or from the same random state, drawn and compared on the device."""
    cupy = gpu.launcher.cupy
    state = gpu.allocate(circuit.num_qubits, "double")
    fill(cupy, state.amps, circuit.number)
    from_zero = circuit.on_gpu.options.from_zero
    host = cpu.allocate(circuit.num_qubits, "double") if from_zero else cpu.load(state.amps.get(), "double")
    run_steps(gpu, state, circuit.on_gpu.steps)
    run_steps(cpu, host, circuit.on_cpu.steps)
    place = [circuit.on_gpu.final_position[qubit] for qubit in np.argsort(circuit.on_cpu.final_position)]
    return distance(cupy, state.amps, cupy.asarray(cpu.vector(host)), place)


def compile_ahead(gpu, circuit):
    """Has the circuit's straight-line kernels compiled, beside what runs next."""
    once, passes.ONCE_QUBITS = passes.ONCE_QUBITS, 0
    run_steps(gpu, gpu.allocate(circuit.num_qubits, "double"), circuit.on_gpu.steps)
    passes.ONCE_QUBITS = once


def main():
    """Runs the comparison."""
    given = sys.argv[1:] + ["500", "26", "inf"][len(sys.argv) - 1 :]
    count, widest, seconds = int(given[0]), int(given[1]), float(given[2])
    gpu, cpu, start = engine.create(), select("cpu"), time.time()
    devices = gpu.device(), cpu.device()
    worst, done = 0.0, 0
    for first in range(0, count, GROUP):
        group = [draw(number, widest, devices) for number in range(first, min(first + GROUP, count))]
        for circuit in group:
            if circuit.straight:
                compile_ahead(gpu, circuit)
        for circuit in sorted(group, key=lambda circuit: circuit.straight):
            if time.time() - start > seconds:
                break
            if circuit.straight:
                gpu.compiler.finish()
            error = apart(gpu, cpu, circuit)
            if not error <= LIMIT:
                print(f"circuit {circuit.number}, {circuit.num_qubits} qubits: distance {error:.3g}", flush=True)
            worst, done = max(worst, error if math.isfinite(error) else math.inf), done + 1
        gpu.launcher.cupy.get_default_memory_pool().free_all_blocks()
        print(f"{done} circuits, {time.time() - start:.0f} s, worst distance {worst:.3g}", flush=True)
        if time.time() - start > seconds:
            break
    straight = sum(code is not None for code in gpu.compiler.code.values())
    which = f"{done} of {count} circuits to {widest} qubits, {straight} straight-line kernels"
    print(f"{which}: worst distance {worst:.3g}")
    sys.exit(not (done and straight and worst <= LIMIT))


if __name__ == "__main__":
    main()
