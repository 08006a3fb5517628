"""Run a circuit: counts, and the exact amplitudes behind them."""

from qiskit import QuantumCircuit

from qsim_ozaki import OzakiBackend, save_statevector

backend = OzakiBackend()

bell = QuantumCircuit(2)
bell.h(0)
bell.cx(0, 1)

measured = bell.measure_all(inplace=False)
counts = backend.run(measured, shots=1000, seed_simulator=7).result().get_counts()
print("counts:", counts)

saved = bell.copy()
save_statevector(saved)
state = backend.run(saved).result().data(0)["statevector"]
for index, amp in enumerate(state):
    print(f"|{index:02b}>  {amp:.6f}")
