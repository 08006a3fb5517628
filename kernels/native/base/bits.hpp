// base/bits.hpp -- index arithmetic on basis states: tiny named functions, shared by every kernel.
#pragma once

#include <cstdint>

namespace qsim {

using index_t = std::uint64_t;  // basis-state indices are 64-bit everywhere

inline int bit(index_t index, int position) { return static_cast<int>((index >> position) & 1); }

// index with a zero inserted at `position`: bits from there on move up by one.
inline index_t insert_zero(index_t index, int position) {
    const index_t low = index & ((index_t{1} << position) - 1);
    return ((index ^ low) << 1) | low;
}

// index with zeros inserted at ascending `positions`.
inline index_t insert_zeros(index_t index, const std::uint8_t* positions, int count) {
    for (int j = 0; j < count; ++j) index = insert_zero(index, positions[j]);
    return index;
}

// bit j of `value` goes to positions[j].
template <class Position>
inline index_t deposit(index_t value, const Position* positions, int count) {
    index_t out = 0;
    for (int j = 0; j < count; ++j) out |= ((value >> j) & 1) << positions[j];
    return out;
}

// bit positions[j] of `index` becomes bit j.
template <class Position>
inline index_t extract(index_t index, const Position* positions, int count) {
    index_t out = 0;
    for (int j = 0; j < count; ++j) out |= ((index >> positions[j]) & 1) << j;
    return out;
}

}  // namespace qsim
