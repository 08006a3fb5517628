// cpu/tile/move.hpp -- a tile between the state (re, im interleaved) and the tile buffer (vectors of re, vectors of im).
// Work  16 B read or written per complex128 amplitude each way, in whole cache lines.
#pragma once

#include "base/simd.hpp"
#include "cpu/tile/program.hpp"

namespace qsim {
namespace QSIM_ISA {

// Reads the tile at `base`, asking for the one at `next` meanwhile; returns false where every amplitude is zero.
template <class Real>
QSIM_INLINE bool gather_tile(const TileView<Real>& view, const Real* state, index_t base, index_t next, Real* tile) {
    using Vec = typename Simd<Real>::Vec;
    constexpr int W = kLanes<Real>;
    const index_t vectors = index_t{1} << (view.num_tile - view.lane_bits);
    const Real* origin = state + 2 * base;
    const Real* next_origin = state + 2 * next;
    typename Simd<Real>::Mask any{};
    for (index_t v = 0; v < vectors; ++v) {
        const Vec first = load(origin + 2 * view.gather[2 * v]);
        const Vec second = load(origin + 2 * view.gather[2 * v + 1]);
        if (view.prefetch) {
            __builtin_prefetch(next_origin + 2 * view.gather[2 * v], 0, 2);
            __builtin_prefetch(next_origin + 2 * view.gather[2 * v + 1], 0, 2);
        }
        any |= (typename Simd<Real>::Mask)first | (typename Simd<Real>::Mask)second;
        store(tile + 2 * W * v, pick(first, second, Lanes<EvenLane, W>{}));
        store(tile + 2 * W * v + W, pick(first, second, Lanes<OddLane, W>{}));
    }
    typename Simd<Real>::Int sum = 0;
    for (int lane = 0; lane < W; ++lane) sum |= any[lane];
    return sum != 0;
}

template <class Real, bool kScale>
QSIM_INLINE void scatter_vectors(const TileView<Real>& view, Real* origin, const Real* tile) {
    using Vec = typename Simd<Real>::Vec;
    constexpr int W = kLanes<Real>;
    const index_t vectors = index_t{1} << (view.num_tile - view.lane_bits);
    const Vec a = broadcast<Real>(static_cast<Real>(view.scale_re)), b = broadcast<Real>(static_cast<Real>(view.scale_im));
    for (index_t v = 0; v < vectors; ++v) {
        Vec re = load(tile + 2 * W * v), im = load(tile + 2 * W * v + W);
        if (kScale) {
            const Vec old = re;
            re = a * old - b * im;
            im = a * im + b * old;
        }
        const Vec first = pick(re, im, Lanes<LowInterleave<W>, W>{});
        const Vec second = pick(re, im, Lanes<HighInterleave<W>, W>{});
        Real* to_first = origin + 2 * view.scatter[2 * v];
        Real* to_second = origin + 2 * view.scatter[2 * v + 1];
        store(to_first, first);
        store(to_second, second);
    }
}

template <class Real>
QSIM_INLINE void scatter_tile(const TileView<Real>& view, Real* state, index_t base, const Real* tile) {
    Real* origin = state + 2 * base;
    if (view.scale_re != 1 || view.scale_im != 0) scatter_vectors<Real, true>(view, origin, tile);
    else scatter_vectors<Real, false>(view, origin, tile);
}

}  // namespace QSIM_ISA
}  // namespace qsim
