// sampling/outcomes.hpp -- classical values of sampled basis states: distinct ones, how often each came, in hexadecimal.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/bits.hpp"

namespace qsim {

// Pairs (bit of a key, bit of a value); a value's bit occurs once.
using Reads = std::vector<std::pair<int, int>>;

struct Outcomes {
    std::vector<index_t> keys;          // distinct, ascending
    std::vector<std::int64_t> counts;   // of each
    std::vector<std::int64_t> order;    // place in `keys` of each sample; empty where not wanted
};

// The samples by the bits in `reads`; on return `reads` names each qubit by its bit in a key.
Outcomes distinct_outcomes(const std::int64_t* samples, std::size_t count, Reads& reads, bool memory);

// Writes keys as hexadecimal values of any number of bits.
class ValueWriter {
  public:
    // `base`: the value's other bits, lowest word first.
    ValueWriter(const Reads& reads, std::vector<index_t> base);

    // The text of `key`'s value, as Python's hex() writes it; valid until the next call.
    const std::string& text(index_t key);

  private:
    struct Move {
        index_t mask;
        int word, left;  // shift to the left, or to the right where negative
    };
    std::vector<Move> moves_;
    std::vector<index_t> base_, words_;
    std::string text_;
};

}  // namespace qsim
