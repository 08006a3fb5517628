// sampling/binomial.hpp -- NumPy's binomial and multinomial draws, number for number, and its pairwise sum, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sampling/stream.hpp"

namespace qsim {

// How many of `trials` succeed, each with `probability`.
std::int64_t binomial(Stream& stream, std::int64_t trials, double probability);

// counts[j]: how many of `trials` give outcome j, which has probabilities[j]; the probabilities add up to 1.
void multinomial(Stream& stream, std::int64_t trials, const double* probabilities, std::size_t size, std::int64_t* counts);

// The sum as NumPy adds contiguous numbers: eight running sums in blocks of at most 128 numbers, blocks in pairs.
double pairwise_sum(const double* values, std::size_t size);

}  // namespace qsim
