// cpu/state/pauli.hpp -- Pauli strings on a state: expectation values of many in one reading, and a weighted sum applied.
// A string is (x, z): qubit q holds X where only x has the bit, Z where only z has it, Y where both do.
#pragma once

#include <complex>

#include "base/bits.hpp"

namespace qsim {

// out[k] = <state| P_k |state>, for `count` strings. Strings that flip the same qubits share one product per amplitude,
// and all strings share each reading of a chunk. Sums run over fixed chunks: the same bits for any number of threads.
template <class Real>
void pauli_expectations(const std::complex<Real>* state, int num_qubits, const index_t* x, const index_t* z, index_t count,
                        double* out, int threads);

// out = sum over k of weights[k] P_k |state>; `out` is another array.
void pauli_sum(const std::complex<double>* state, int num_qubits, const index_t* x, const index_t* z, const double* weights,
               index_t count, std::complex<double>* out, int threads);

}  // namespace qsim
