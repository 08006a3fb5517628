"""The picture of ``run --plot``: the counts, or the final state of a circuit that measures nothing.

In: a circuit before it runs, and its result. Out: a circuit that saves what the picture needs, and a file. It may not
run a circuit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qsim_ozaki.cli.load import has_measurement
from qsim_ozaki.errors import OptionError, QsimError

if TYPE_CHECKING:
    from qiskit import QuantumCircuit
    from qiskit.result import Result

    from qsim_ozaki.provider import OzakiBackend

LABEL = "state of the picture"


def check(circuit: QuantumCircuit, file: str) -> None:
    """Checks, before the run, that there will be a picture.

    Raises:
        QsimError: the circuit has nothing to draw, or ``file`` cannot be written.
    """
    from qsim_ozaki.provider import check_picture

    if not circuit.num_qubits and not circuit.num_clbits:
        raise QsimError(f"{circuit.name} has neither qubits nor classical bits, so there is nothing to plot.")
    check_picture(file)


def with_state(circuit: QuantumCircuit, backend: OzakiBackend, shots: int) -> QuantumCircuit:
    """Returns a copy of ``circuit`` that saves its state at its end, which takes no memory of its own.

    A circuit that measures is returned as it is, and so is one that leaves another state in every shot, by a reset.
    """
    from qsim_ozaki.lowering import save_statevector

    if not circuit.num_qubits or has_measurement(circuit):
        return circuit
    saving = save_statevector(circuit.copy(), LABEL)
    try:
        backend.estimate(saving, shots=shots)
    except OptionError:
        return circuit
    return saving


def draw(result: Result, file: str) -> None:
    """Draws the saved state of a circuit from `with_state`, or else the counts."""
    from qsim_ozaki.provider import plot_counts, plot_state

    data = result.data(0)
    if LABEL in data:
        plot_state(data[LABEL], file)
    else:
        plot_counts(result.get_counts(), file)
