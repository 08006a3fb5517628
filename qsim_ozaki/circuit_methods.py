"""Gives Qiskit's `QuantumCircuit` the methods ``save_*`` and ``set_statevector``, with the signatures of Aer's.

In: nothing. Out: methods on Qiskit's class. It may not import Qiskit, and it never replaces a method that is there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

HOME = "qiskit.circuit.quantumcircuit"  # the module that defines `QuantumCircuit`


def save_state(self: Any, label: str | None = None, pershot: bool = False, conditional: bool = False) -> Any:
    """Appends `qsim_ozaki.save_state`; without a label, the state is saved as ``statevector``."""
    return _append("save_state", self, label=label or "statevector", pershot=pershot, conditional=conditional)


def save_statevector(self: Any, label: str = "statevector", pershot: bool = False, conditional: bool = False) -> Any:
    """Appends `qsim_ozaki.save_statevector`."""
    return _append("save_statevector", self, label=label, pershot=pershot, conditional=conditional)


def save_statevector_dict(
    self: Any, label: str = "statevector", pershot: bool = False, conditional: bool = False
) -> Any:
    """Appends `qsim_ozaki.save_statevector_dict`."""
    return _append("save_statevector_dict", self, label=label, pershot=pershot, conditional=conditional)


def save_amplitudes(
    self: Any, params: Iterable[int], label: str = "amplitudes", pershot: bool = False, conditional: bool = False
) -> Any:
    """Appends `qsim_ozaki.save_amplitudes` of the basis states ``params``."""
    return _append("save_amplitudes", self, indices=params, label=label, pershot=pershot, conditional=conditional)


def save_amplitudes_squared(
    self: Any,
    params: Iterable[int],
    label: str = "amplitudes_squared",
    unnormalized: bool = False,
    pershot: bool = False,
    conditional: bool = False,
) -> Any:
    """Appends `qsim_ozaki.save_amplitudes_squared` of the basis states ``params``."""
    forms = {"unnormalized": unnormalized, "pershot": pershot, "conditional": conditional}
    return _append("save_amplitudes_squared", self, indices=params, label=label, **forms)


def save_probabilities(
    self: Any,
    qubits: Sequence[Any] | None = None,
    label: str = "probabilities",
    unnormalized: bool = False,
    pershot: bool = False,
    conditional: bool = False,
) -> Any:
    """Appends `qsim_ozaki.save_probabilities`."""
    forms = {"unnormalized": unnormalized, "pershot": pershot, "conditional": conditional}
    return _append("save_probabilities", self, qubits=qubits, label=label, **forms)


def save_probabilities_dict(
    self: Any,
    qubits: Sequence[Any] | None = None,
    label: str = "probabilities",
    unnormalized: bool = False,
    pershot: bool = False,
    conditional: bool = False,
) -> Any:
    """Appends `qsim_ozaki.save_probabilities_dict`."""
    forms = {"unnormalized": unnormalized, "pershot": pershot, "conditional": conditional}
    return _append("save_probabilities_dict", self, qubits=qubits, label=label, **forms)


def save_density_matrix(
    self: Any,
    qubits: Sequence[Any] | None = None,
    label: str = "density_matrix",
    unnormalized: bool = False,
    pershot: bool = False,
    conditional: bool = False,
) -> Any:
    """Appends `qsim_ozaki.save_density_matrix`."""
    forms = {"unnormalized": unnormalized, "pershot": pershot, "conditional": conditional}
    return _append("save_density_matrix", self, qubits=qubits, label=label, **forms)


def save_expectation_value(
    self: Any,
    operator: Any,
    qubits: Sequence[Any],
    label: str = "expectation_value",
    unnormalized: bool = False,
    pershot: bool = False,
    conditional: bool = False,
) -> Any:
    """Appends `qsim_ozaki.save_expectation_value`."""
    forms = {"unnormalized": unnormalized, "pershot": pershot, "conditional": conditional}
    return _append("save_expectation_value", self, operator=operator, qubits=qubits, label=label, **forms)


def save_expectation_value_variance(
    self: Any,
    operator: Any,
    qubits: Sequence[Any],
    label: str = "expectation_value_variance",
    unnormalized: bool = False,
    pershot: bool = False,
    conditional: bool = False,
) -> Any:
    """Appends `qsim_ozaki.save_expectation_value_variance`."""
    forms = {"unnormalized": unnormalized, "pershot": pershot, "conditional": conditional}
    return _append("save_expectation_value_variance", self, operator=operator, qubits=qubits, label=label, **forms)


def set_statevector(self: Any, state: Any) -> Any:
    """Appends `qsim_ozaki.set_statevector`."""
    return _append("set_statevector", self, vector=state)


METHODS: tuple[Callable[..., Any], ...] = (
    save_state,
    save_statevector,
    save_statevector_dict,
    save_amplitudes,
    save_amplitudes_squared,
    save_probabilities,
    save_probabilities_dict,
    save_density_matrix,
    save_expectation_value,
    save_expectation_value_variance,
    set_statevector,
)


def attach_methods() -> None:
    """Attaches the methods to `QuantumCircuit`: now if Qiskit is imported, else as soon as it is."""
    module = sys.modules.get(HOME)
    circuit_class = getattr(module, "QuantumCircuit", None)
    if circuit_class is not None:
        _attach(circuit_class)
    elif not any(isinstance(finder, _CircuitFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _CircuitFinder())


class _CircuitFinder:
    """An import hook that attaches the methods when Python imports `HOME`, and then removes itself."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Returns the specification of `HOME`, whose loader also attaches; None for any other module."""
        if name != HOME:
            return None
        import importlib.util  # not above, for `import qsim_ozaki` must stay fast

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_attach(module: ModuleType) -> None:
                execute(module)
                _attach(module.QuantumCircuit)

            spec.loader.exec_module = execute_and_attach  # type: ignore[method-assign]
        return spec


def _attach(circuit_class: type) -> None:
    for method in METHODS:
        if not hasattr(circuit_class, method.__name__):
            setattr(circuit_class, method.__name__, method)


def _append(name: str, circuit: Any, **arguments: Any) -> Any:
    """Calls the public function ``name``; its module is imported at the first call, for it imports Qiskit."""
    return getattr(import_module("qsim_ozaki.lowering"), name)(circuit, **arguments)
