// cpu/tile/pauli.hpp -- rotations about Pauli strings of one direction: amplitude i meets amplitude i ^ direction.
//
// y[i] = own[i] x[i] + other[i] x[i ^ direction], `other` times i where imaginary. The real factors of i depend on a few parities
// of i, as in parity.hpp, so that all rotations that commute and have one direction take one sweep.
// Work  4 multiplications and additions per amplitude, however many rotations.
#pragma once

#include "base/simd.hpp"
#include "cpu/tile/parity.hpp"
#include "cpu/tile/permute.hpp"
#include "cpu/tile/program.hpp"

namespace qsim {
namespace QSIM_ISA {

// The vector whose lane l is lane l ^ kMask.
template <class Real, int kMask>
QSIM_INLINE typename Simd<Real>::Vec xor_lanes(typename Simd<Real>::Vec x) {
    constexpr int W = kLanes<Real>;
    if constexpr ((kMask & 1) != 0) x = flip_lanes<Real, 0>(x);
    if constexpr ((kMask & 2) != 0 && W > 2) x = flip_lanes<Real, 1>(x);
    if constexpr ((kMask & 4) != 0 && W > 4) x = flip_lanes<Real, 2>(x);
    if constexpr ((kMask & 8) != 0 && W > 8) x = flip_lanes<Real, 3>(x);
    return x;
}

// `patterns` has the pattern of each vector of the block, `distance` is the direction as vectors.
template <class Real, int kMask, bool kImaginary>
static void rotate_direction(const std::uint32_t* patterns, std::uint32_t outside, const Real* factors, index_t distance, Real* block,
                             int vector_bits) {
    using Vec = typename Simd<Real>::Vec;
    constexpr int W = kLanes<Real>;
    const auto turn = [](Vec own, Vec other, Vec re, Vec im, Vec partner_re, Vec partner_im, Real* to) {
        store(to, kImaginary ? own * re - other * partner_im : own * re + other * partner_re);
        store(to + W, kImaginary ? own * im + other * partner_re : own * im + other * partner_im);
    };
    const index_t vectors = index_t{1} << vector_bits, pivot = distance & (~distance + 1);
    for (index_t v = 0; v < vectors; v = distance ? ((v | pivot) + 1) & ~pivot : v + 1) {
        Real* first = block + 2 * W * v;
        const Real* f = factors + 2 * W * (patterns[v] ^ outside);
        const Vec re = load(first), im = load(first + W);
        const Vec flipped_re = xor_lanes<Real, kMask>(re), flipped_im = xor_lanes<Real, kMask>(im);
        if (!distance) {
            turn(load(f), load(f + W), re, im, flipped_re, flipped_im, first);
            continue;
        }
        Real* second = block + 2 * W * (v ^ distance);
        const Real* g = factors + 2 * W * (patterns[v ^ distance] ^ outside);
        const Vec re2 = load(second), im2 = load(second + W);
        turn(load(f), load(f + W), re, im, xor_lanes<Real, kMask>(re2), xor_lanes<Real, kMask>(im2), first);
        turn(load(g), load(g + W), re2, im2, flipped_re, flipped_im, second);
    }
}

template <class Real, int kMask = 0>
static void rotate_masked(int mask, bool imaginary, const std::uint32_t* patterns, std::uint32_t outside, const Real* factors,
                          index_t distance, Real* block, int vector_bits) {
    if (mask == kMask) {
        if (imaginary) return rotate_direction<Real, kMask, true>(patterns, outside, factors, distance, block, vector_bits);
        return rotate_direction<Real, kMask, false>(patterns, outside, factors, distance, block, vector_bits);
    }
    if constexpr (kMask + 1 < kLanes<Real>)
        rotate_masked<Real, kMask + 1>(mask, imaginary, patterns, outside, factors, distance, block, vector_bits);
}

// `first`: number of the block's first vector in the tile.
template <class Real>
static void sweep_pauli(const TileView<Real>& view, const Sweep& sweep, index_t base, Real* block, index_t first, int vector_bits) {
    const PhaseTerm& term = view.terms[sweep.phase];
    const index_t direction = term.outer_value;
    const int lanes = static_cast<int>(direction & ((index_t{1} << view.lane_bits) - 1));
    rotate_masked<Real>(lanes, sweep.flags != 0, view.indices + term.inner_index + first, outside_pattern(view, sweep, base),
                        view.data + sweep.data, direction >> view.lane_bits, block, vector_bits);
}

}  // namespace QSIM_ISA
}  // namespace qsim
