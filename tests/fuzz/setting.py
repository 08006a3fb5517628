"""One case of the fuzz: its seed, its generator, and the options that it runs with."""

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from qiskit import transpile
from qiskit.circuit.exceptions import CircuitError
from qiskit.quantum_info import Statevector

from qsim_ozaki import OzakiBackend

LEVELS = (None, None, 0, 1, 2, 3)  # None: not transpiled


@lru_cache(1)
def shared_backend():
    """One backend of a process: every option goes with the run."""
    return OzakiBackend()


@dataclass
class Case:
    """Case ``number`` of the fuzz of ``seed``.

    Attributes:
        seed: of the whole fuzz.
        number: of the case.
        turn: number of the case among those of its kind, to take rare draws in turn.
        tally: how often each gate was drawn, each path taken and each check made.
        rng: depends on the seed and the number alone.
        story: what was drawn, for the message of a failure.
        circuit: the circuit that ran last, for the message of a failure.
    """

    seed: int
    number: int
    turn: int = 0
    tally: Counter = field(default_factory=Counter)

    def __post_init__(self):
        self.rng = np.random.default_rng([self.seed, self.number])
        self.story, self.circuit = [], None

    def checked(self, what):
        self.tally[f"check {what}"] += 1

    def width(self, most=10):
        """A number of qubits: small ones often."""
        return int(self.rng.integers(1, 6 if self.rng.random() < 0.6 else most + 1))

    def precision(self):
        return self.note("precision", "single" if self.rng.random() < 0.3 else "double")

    def note(self, name, value):
        self.story.append(f"{name}={value!r}")
        return value

    def options(self, **others):
        """Options that change no value: threads, arithmetic, a seed."""
        options = {"threads": int(self.rng.integers(1, 3)), "seed_simulator": int(self.rng.integers(1 << 31))}
        options["arithmetic"] = str(self.rng.choice(["auto", "native", "emulated"], p=[0.7, 0.15, 0.15]))
        return self.note("options", options | others)

    def transpiled(self, circuit):
        """The circuit at a random level, and whether it was transpiled."""
        level = self.note("level", LEVELS[int(self.rng.integers(len(LEVELS)))])
        if level is None:
            return circuit, False
        seed = int(self.rng.integers(1 << 31))
        try:
            return transpile(circuit, shared_backend(), optimization_level=level, seed_transpiler=seed), True
        except CircuitError:  # Qiskit cannot rebuild some of its own circuits, as loops whose variable is not used
            self.tally["case that Qiskit cannot transpile"] += 1
            return circuit, False

    def run(self, circuit, **options):
        """The result of the circuits; its steps are counted."""
        self.circuit = circuit
        result = shared_backend().run(circuit, **options).result()
        for experiment in result.results:
            for name, count in experiment.metadata["steps"].items():
                self.tally[f"step {name}"] += count
        return result


def vector_of(state):
    """Amplitudes of a saved state, which has a class of Qiskit in double precision."""
    return np.asarray(getattr(state, "data", state)) if isinstance(state, Statevector) else np.asarray(state)
