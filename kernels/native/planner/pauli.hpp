// planner/pauli.hpp -- Pauli strings as masks, and what one-qubit Clifford gates and CX make of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "planner/fuse.hpp"

namespace qsim {

// a + b P with P = i^(number of Y) X^x Z^z, where Y is on the qubits of both masks.
struct PauliSum {
    complex_t a = 1, b = 0;
    index_t x = 0, z = 0;
};

// A one-qubit matrix that maps X and Z to Paulis: the letters (1 X, 2 Y, 3 Z) and signs of their images.
struct Clifford {
    Matrix2 matrix;
    std::array<std::uint32_t, 2> letter;   // of X, of Z
    std::array<bool, 2> negative;

    bool is_identity() const { return letter[0] == kLetterX && letter[1] == kLetterZ && !negative[0] && !negative[1]; }
    bool keeps_x() const { return letter[0] == kLetterX && !negative[0]; }
    bool keeps_z() const { return letter[1] == kLetterZ && !negative[1]; }
};

// Nothing where `u` is not Clifford to rounding.
std::optional<Clifford> clifford(const Matrix2& u);

// The axis (1 X, 2 Y, 3 Z) and a, b of u = a + b axis; nothing where `u` has no such form to rounding.
struct AxisSum {
    std::uint32_t letter;
    complex_t a, b;
};
std::optional<AxisSum> axis_sum(const Matrix2& u);

// c P c^-1 for a Clifford on qubit `qubit`, and CX P CX with masks of control and target; signs go to b.
void conjugate(PauliSum& sum, const Clifford& c, int qubit);
void conjugate_cx(PauliSum& sum, index_t control, index_t target);

}  // namespace qsim
