// ir/matrix_check.hpp -- structure and unitarity of a matrix that a user passed in.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/op_list.hpp"

namespace qsim {

constexpr double kUnitarityTolerance = 1e-5 + 1e-8;  // Qiskit's own relative and absolute tolerance of |U^dagger U - 1|
constexpr double kUnitaryRounding = 1e-12;            // a unitary matrix is this far from one by rounding alone
constexpr double kNegligible = 0x1p-54;       // half an ulp of a unitary's largest entry: smaller ones are the rounding of a zero
constexpr double kRounded = 0x1p-51;          // two entries that differ by less are one number, rounded a few times

// The strongest structure that is true of a row-major size x size unitary, entries up to kNegligible taken as zero: leaving one out
// changes a product by less than its own rounding. `place` gets the row of each column's only entry, of a permutation.
Kind structure_of(const complex_t* matrix, std::size_t size, std::int64_t* place);

// The largest entry of |U^dagger U - 1| of a row-major size x size matrix; beyond 8 x 8 that of |U^dagger U p - p| for four random
// vectors p with entries in [-1, 1] (Freivalds' check). Infinite where the matrix is not finite.
double distance_from_unitary(const complex_t* u, std::size_t size);

// Appends a row-major matrix on `targets` by its structure, or nothing if it is not unitary within kUnitaryRounding. Returns its
// distance_from_unitary.
double append_unitary(OpList& ops, const complex_t* matrix, const std::vector<std::int32_t>& targets, std::uint16_t name);

}  // namespace qsim
