// cpu/tile/parity.hpp -- factors that depend on the parities of many qubits, inside and outside the tile.
//
// Up to kMaxParities of them act in one sweep. Every vector reads which of the 2^count patterns of factors it takes: that of
// its number inside the tile, with one bit flipped for each parity that the qubits outside make odd.
// Work  4 fused multiply-adds per amplitude for each sweep.
#pragma once

#include "base/simd.hpp"
#include "cpu/tile/program.hpp"

namespace qsim {
namespace QSIM_ISA {

// The bits of a sweep's patterns that the qubits outside the tile flip.
template <class Real>
QSIM_INLINE std::uint32_t outside_pattern(const TileView<Real>& view, const Sweep& sweep, index_t base) {
    std::uint32_t out = 0;
    for (int j = 0; j < sweep.num_targets; ++j)
        out |= static_cast<std::uint32_t>(__builtin_popcountll(base & view.terms[sweep.phase + j].outer_mask) & 1) << j;
    return out;
}

// `first`: number of the block's first vector in the tile.
template <class Real>
static void sweep_parity(const TileView<Real>& view, const Sweep& sweep, index_t base, Real* block, index_t first,
                         int vector_bits) {
    using Vec = typename Simd<Real>::Vec;
    constexpr int W = kLanes<Real>;
    const std::uint32_t outside = outside_pattern(view, sweep, base);
    const std::uint32_t* pattern = view.indices + view.terms[sweep.phase].inner_index + first;
    const Real* factors = view.data + sweep.data;
    for (index_t v = 0; v < index_t{1} << vector_bits; ++v) {
        const Real* from = factors + 2 * W * (pattern[v] ^ outside);
        Real* at = block + 2 * W * v;
        const Vec a = load(from), b = load(from + W), re = load(at), im = load(at + W);
        store(at, a * re - b * im);
        store(at + W, a * im + b * re);
    }
}

}  // namespace QSIM_ISA
}  // namespace qsim
