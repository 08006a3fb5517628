// matrix_check.hpp -- what is true of a matrix that a user gave.
#pragma once

#include "op_list.hpp"

namespace qsim {

// The structure of a row-major size x size matrix whose entries up to `negligible` count as zero: kDiagonal, kPermutation or
// kUnitary. `place` gets the row of each column's only entry, of a permutation.
Kind structure_of(const complex_t* matrix, std::size_t size, double negligible, std::int64_t* place);

// The largest entry of |U^dagger U - 1| of a row-major size x size matrix; beyond 8 x 8 that of |U^dagger U p - p| for four random
// vectors p with entries in [-1, 1] (Freivalds' check). Infinite where the matrix is not finite.
double distance_from_unitary(const complex_t* u, std::size_t size);

}  // namespace qsim
