// planner/fuse.hpp -- rewriting of operators before they are planned; every function keeps the product.
#pragma once

#include <array>

#include "ir/op_list.hpp"

namespace qsim {

// Fewer and leaner operators: one-qubit gates are merged and split into diagonals around one real rotation, CX between rotations
// becomes CZ, matrices on at most `max_fused_qubits` qubits absorb their neighbours.
OpList fuse(const OpList& ops, int num_qubits, int max_fused_qubits);

// `ops` on physical qubits, uncontrolled SWAPs turned into a change of `place` (physical qubit of each program qubit).
OpList relabel_swaps(const OpList& ops, std::vector<int>& place);

// The same; besides, Clifford gates that undo each other around rotations leave rotations about Pauli strings, and SWAPs made of CX
// gates are found. Strings with X or Y on more than max_direction qubits are written as a change of basis around a parity.
OpList collect_rotations(const OpList& ops, std::vector<int>& place, int max_direction);

// Adds `op` of `from` to `to`, on physical qubits.
void append_placed(OpList& to, const OpList& from, const OpHead& op, const std::vector<int>& place);

// Takes the leading one-qubit gates and phases, which act on |0...0>, into `factors` (two per qubit); returns what is left.
// basis_states_only: on each qubit only where they leave it |0> or |1>.
OpList absorb_product(const OpList& ops, std::vector<complex_t>& factors, bool basis_states_only);

// u = left core right with diagonal left and right (two entries each in the corners) and a core of two operations per amplitude.
using Matrix2 = std::array<complex_t, 4>;  // row-major
struct Split {
    Matrix2 left, core, right;
};
Split split(const Matrix2& u);

Matrix2 axis_matrix(std::uint32_t letter, complex_t a, complex_t b);  // a + b X, Y or Z
Matrix2 multiply(const Matrix2& a, const Matrix2& b);  // b acts first

const Matrix2& hadamard();

// Whether `op` is a one-qubit operator without controls; then `matrix` is it.
bool one_qubit_matrix(const OpList& ops, const OpHead& op, Matrix2& matrix);

bool is_cx(const OpList& ops, const OpHead& op);
bool is_swap(const OpList& ops, const OpHead& op);

}  // namespace qsim
