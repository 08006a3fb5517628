// cpu/state/measure.hpp -- whole-state operations: preparation, norms, probabilities, sampling, collapse.
// Sums run over fixed chunks, added in order: the same bits for any number of threads.
#pragma once

#include <complex>
#include <vector>

#include "base/bits.hpp"
#include "cpu/state/pages.hpp"

namespace qsim {

// state[i] = product over q of factors[q][bit q of i]; write-only. Zeros are not written to pages that are not in use.
template <class Real>
void prepare_product(std::complex<Real>* state, int num_qubits, const std::complex<double>* factors, const PageView& pages,
                     int threads);

template <class Real>
double norm_squared(const std::complex<Real>* state, int num_qubits, int threads);

// out[j]: probability that qubits[b] reads bit b of j, for all b.
template <class Real>
void marginal_probabilities(const std::complex<Real>* state, int num_qubits, const std::vector<int>& qubits, double* out,
                            int threads);

// out[i]: the first basis state whose cumulative probability exceeds uniforms[i] * norm.
template <class Real>
void sample_states(const std::complex<Real>* state, int num_qubits, const double* uniforms, index_t count, std::int64_t* out,
                   int threads);

// Amplitudes whose index bits under `mask` are not `value` become 0, the others are multiplied by `scale`.
template <class Real>
void collapse(std::complex<Real>* state, int num_qubits, index_t mask, index_t value, double scale, int threads);

}  // namespace qsim
