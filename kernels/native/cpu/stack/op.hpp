// cpu/stack/op.hpp -- one operator of a stack program as plain data, for kernels that must not instantiate library templates.
//
// A tile holds 2^T amplitudes as T-bit positions: real parts in one array, imaginary parts in another. Positions below
// log2(W) (W = numbers a vector register holds) are lane bits, the others bits of the vector number.
#pragma once

#include <cstdint>

#include "base/bits.hpp"
#include "cpu/tuning.hpp"

namespace qsim {

constexpr int kStackMinTile = 3;   // a tile fills a vector register of any instruction set
constexpr int kStackTargets = 32;  // targets of one diagonal

enum class StackType : std::uint8_t {
    kDiagonal,  // factors over any targets
    kPair,      // a 2x2 matrix on one position
    kDense,     // a 2^k x 2^k matrix
    kPermute    // amplitude j goes to indices[j], times data[j]
};

struct StackOp {
    StackType type = StackType::kPair;
    bool slot = false;  // its numbers come with each row, else they are the program's own
    std::uint8_t num_inner = 0, num_outer = 0;
    std::uint8_t inner[kStackTargets] = {}, inner_bit[kStackTargets] = {};  // position, and its bit of the data index
    std::uint8_t outer[kStackTargets] = {}, outer_bit[kStackTargets] = {};  // the same for qubits outside the tile
    std::uint32_t control_mask = 0, control_value = 0;    // positions
    index_t outer_mask = 0, outer_value = 0;              // controls outside the tile, as bits of the state index
    std::int64_t offset = 0;  // first of its complex numbers, in the row or in the program
    std::int64_t size = 0;    // how many they are
    std::int64_t index = 0;   // kPermute: its first entry of the program's indices
};

// One tile of one state while its operators run.
struct StackTile {
    double *re, *im;   // 2^bits numbers each
    int bits;
    index_t base;      // state index of its first amplitude: the bits outside the tile
};

}  // namespace qsim
