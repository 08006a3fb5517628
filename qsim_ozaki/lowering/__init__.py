"""Qiskit's circuits to programs: gates, control flow, saves, parameters.

This is the last stage that sees a circuit.
"""

from qsim_ozaki.lowering.bindings import Values, bound_circuit, finite_rows, one_per_circuit, parameter_rows
from qsim_ozaki.lowering.circuit import LABEL_GATES, lower
from qsim_ozaki.lowering.gates import ANY, GATES, row_op
from qsim_ozaki.lowering.instructions import (
    SAVES,
    SaveInstruction,
    SaveStatevector,
    SetStatevector,
    save_amplitudes,
    save_amplitudes_squared,
    save_density_matrix,
    save_expectation_value,
    save_expectation_value_variance,
    save_probabilities,
    save_probabilities_dict,
    save_state,
    save_statevector,
    save_statevector_dict,
    set_statevector,
)
from qsim_ozaki.lowering.layout import final_order
from qsim_ozaki.lowering.projectors import split_projectors
from qsim_ozaki.lowering.start import lower_from, start_qubits
from qsim_ozaki.lowering.template import Template, make_template

__all__ = [
    "ANY",
    "GATES",
    "LABEL_GATES",
    "SAVES",
    "SaveInstruction",
    "SaveStatevector",
    "SetStatevector",
    "Template",
    "Values",
    "bound_circuit",
    "final_order",
    "finite_rows",
    "lower",
    "lower_from",
    "make_template",
    "one_per_circuit",
    "parameter_rows",
    "row_op",
    "save_amplitudes",
    "save_amplitudes_squared",
    "save_density_matrix",
    "save_expectation_value",
    "save_expectation_value_variance",
    "save_probabilities",
    "save_probabilities_dict",
    "save_state",
    "save_statevector",
    "save_statevector_dict",
    "set_statevector",
    "split_projectors",
    "start_qubits",
]
