"""Read how a circuit will run before it runs, then see how long it took."""

import time

from qsim_ozaki import OzakiBackend
from qsim_ozaki.circuits import build

circuit = build("qft", 20)
backend = OzakiBackend()

plan = backend.plan(circuit)
print(plan.explain())

start = time.perf_counter()
backend.run(circuit.measure_all(inplace=False), shots=1).result()
print(f"predicted {plan.prediction.seconds:.3f} s, measured {time.perf_counter() - start:.3f} s, one sample drawn")
