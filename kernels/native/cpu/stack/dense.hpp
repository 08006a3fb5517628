// cpu/stack/dense.hpp -- matrices on 2 to 5 positions of a tile, a vector of amplitudes at a time. Included once per instruction
// set.
// Source  arXiv:1704.01127, section 3.1; every entry of a column is one complex product, added in the order of the columns.
#pragma once

#include "cpu/stack/gates.hpp"

namespace qsim {
namespace QSIM_ISA {

constexpr int kStackDense = 5;  // 32 vectors of each part: what spills stays in the first-level cache

// Exchanges two positions, low < high: amplitudes whose bits there differ change places. Its own inverse.
static inline void swap_positions(const StackTile& tile, int low, int high) {
    const std::uint8_t fixed[2] = {static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high)};
    for (index_t k = 0; k < index_t{1} << (tile.bits - 2); ++k) {
        const index_t i = insert_zeros(k, fixed, 2), a = i | index_t{1} << low, b = i | index_t{1} << high;
        const double re = tile.re[a], im = tile.im[a];
        tile.re[a] = tile.re[b], tile.im[a] = tile.im[b];
        tile.re[b] = re, tile.im[b] = im;
    }
}

// `op` acts on positions above the lanes only.
template <int kTargets>
static void dense_vectors(const StackOp& op, const double* data, bool adjoint, const StackTile& tile) {
    constexpr index_t kSize = index_t{1} << kTargets;
    const StackGroups groups = stack_groups(op, tile.bits);
    index_t place[kSize];  // numbers from a group's first amplitude to its j-th
    for (index_t j = 0; j < kSize; ++j) place[j] = spread_index(op, j);
    for (index_t k = 0; k < groups.count; k += kStackLanes) {
        const index_t at = insert_zeros(k, groups.fixed, groups.num_fixed) | op.control_value;
        StackVec re[kSize], im[kSize];
        for (index_t j = 0; j < kSize; ++j) re[j] = load(tile.re + (at | place[j])), im[j] = load(tile.im + (at | place[j]));
        for (index_t r = 0; r < kSize; ++r) {
            StackVec x{}, y{};
            for (index_t c = 0; c < kSize; ++c) {
                const double* u = data + 2 * (adjoint ? c * kSize + r : r * kSize + c);
                const double a = u[0], b = adjoint ? -u[1] : u[1];
                x += a * re[c] - b * im[c];
                y += a * im[c] + b * re[c];
            }
            store(tile.re + (at | place[r]), x);
            store(tile.im + (at | place[r]), y);
        }
    }
}

// Whether it did the operator: not where it has too many positions for the tile. Positions among the lanes change places with
// free ones above them, and back at the end.
static inline bool apply_dense(const StackOp& op, const double* data, bool adjoint, const StackTile& tile) {
    StackOp moved = op;
    std::uint32_t used = op.control_mask;
    for (int j = 0; j < op.num_inner; ++j) used |= std::uint32_t{1} << op.inner[j];
    if (op.num_inner > kStackDense || __builtin_popcount(used) > tile.bits - kStackLaneBits) return false;
    int swapped[kStackLaneBits][2], num_swapped = 0;
    for (int low = 0, high = tile.bits - 1; low < kStackLaneBits; ++low) {
        if (!(used >> low & 1)) continue;
        while (used >> high & 1) --high;
        used |= std::uint32_t{1} << high;
        swapped[num_swapped][0] = low, swapped[num_swapped++][1] = high;
        swap_positions(tile, low, high);
        for (int j = 0; j < op.num_inner; ++j)
            if (op.inner[j] == low) moved.inner[j] = static_cast<std::uint8_t>(high);
        moved.control_mask |= (op.control_mask >> low & 1) << high;
        moved.control_value |= (op.control_value >> low & 1) << high;
        moved.control_mask &= ~(std::uint32_t{1} << low);
        moved.control_value &= ~(std::uint32_t{1} << low);
    }
    switch (op.num_inner) {
        case 2: dense_vectors<2>(moved, data, adjoint, tile); break;
        case 3: dense_vectors<3>(moved, data, adjoint, tile); break;
        case 4: dense_vectors<4>(moved, data, adjoint, tile); break;
        default: dense_vectors<5>(moved, data, adjoint, tile);
    }
    while (num_swapped--) swap_positions(tile, swapped[num_swapped][0], swapped[num_swapped][1]);
    return true;
}

static void stack_apply(const StackOp& op, const double* data, const std::int64_t* indices, bool adjoint,
                        const StackTile& tile, double* scratch) {
    if ((tile.base & op.outer_mask) != op.outer_value) return;
    switch (op.type) {
        case StackType::kDiagonal: return apply_diagonal(op, data, adjoint, tile, scratch);
        case StackType::kPair: return apply_pair(op, data, adjoint, tile);
        case StackType::kDense:
            if (apply_dense(op, data, adjoint, tile)) return;
            [[fallthrough]];
        default: return apply_groups(op, data, indices, adjoint, tile, scratch);
    }
}

}  // namespace QSIM_ISA
}  // namespace qsim
