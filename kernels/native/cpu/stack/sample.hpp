// cpu/stack/sample.hpp -- shots of many small states: those of stack programs are made in the cache, measured there and forgotten.
#pragma once

#include <complex>
#include <vector>

#include "cpu/stack/stack.hpp"

namespace qsim {

// Some rows of one program, or states that are there already.
struct StackRows {
    const StackProgram* program;         // nullptr: `values` are the states
    const std::complex<double>* values;  // (rows, width)
    index_t width, rows;
    index_t first;            // the job's index of the first row: with the seed it fixes the row's random numbers
    std::vector<int> qubits;  // measured, ascending: bit j of a key is what qubits[j] reads
};

// The outcomes of each row's shots, one row after the other.
struct StackShots {
    std::vector<std::int64_t> ends;    // of each row's part of `keys` and `counts`
    std::vector<std::int64_t> keys;    // distinct in a row, ascending
    std::vector<std::int64_t> counts;  // of each
    std::vector<std::uint16_t> order;  // (rows, shots): the key of each shot; empty where not wanted
};

// A row's shot with uniform number u gives the first basis state whose cumulative probability exceeds u times the norm;
// the numbers are those of the stream with `seed` and the row's index as its key.
StackShots sample_rows(const std::vector<StackRows>& all, const std::vector<std::uint32_t>& seed, index_t shots, bool memory,
                       int threads);

}  // namespace qsim
