// cpu/tile/permute.hpp -- permutations, and whatever involves a lane position, inside a tile.
// Work  one read and one write of the tile, in vectors except where a whole tile is shuffled by an index table.
#pragma once

#include "base/simd.hpp"
#include "cpu/tile/program.hpp"
#include "cpu/tile/visit.hpp"

namespace qsim {
namespace QSIM_ISA {

template <class Real, int kBit>
static void lane_dense(const Sweep& sweep, const Real* data, Real* tile, int vector_bits) {
    using Vec = typename Simd<Real>::Vec;
    constexpr int W = kLanes<Real>;
    Sweep no_target = sweep;
    no_target.num_targets = 0;
    const Vec own_re = load(data), own_im = load(data + W), other_re = load(data + 2 * W), other_im = load(data + 3 * W);
    for (Visit visit(no_target, vector_bits); visit.left(); visit.next()) {
        Real* at = tile + 2 * W * visit.vector();
        const Vec re = load(at), im = load(at + W);
        const Vec partner_re = flip_lanes<Real, kBit>(re), partner_im = flip_lanes<Real, kBit>(im);
        store(at, own_re * re - own_im * im + other_re * partner_re - other_im * partner_im);
        store(at + W, own_re * im + own_im * re + other_re * partner_im + other_im * partner_re);
    }
}

template <class Real, int kBit, int kCount>
static void swap_lane(const Sweep& sweep, Real* tile, int vector_bits) {
    using Vec = typename Simd<Real>::Vec;
    constexpr int W = kLanes<Real>;
    const index_t partner = 2 * W * (index_t{1} << sweep.targets[0]);
    for (Visit visit(sweep, vector_bits); visit.left(); visit.next()) {
        Real* at = tile + 2 * W * visit.vector();
        for (int part = 0; part < 2 * W; part += W) {
            const Vec x0 = load(at + part), x1 = load(at + partner + part);
            store(at + part, pick(x0, x1, Lanes<ExchangeLow<kBit, W>, W>{}));
            store(at + partner + part, pick(x0, x1, Lanes<ExchangeHigh<kBit, W>, W>{}));
        }
    }
}

// Calls the instance of `call` for lane bit `bit`.
template <class Real, int kBit, class Call>
QSIM_INLINE void for_lane_bit(int bit, Call call) {
    if constexpr ((1 << kBit) < kLanes<Real>) {
        if (bit == kBit) call(std::integral_constant<int, kBit>{});
        else for_lane_bit<Real, kBit + 1>(bit, call);
    }
}

// X on one target: two vectors change places.
template <class Real>
static void exchange_pairs(const Sweep& sweep, Real* tile, int vector_bits) {
    constexpr int W = kLanes<Real>;
    const index_t partner = 2 * W * (index_t{1} << sweep.targets[0]);
    const bool masked = sweep.controls.lane_mask != 0;
    const auto mask = lane_mask<Real>(sweep.controls);
    for (Visit visit(sweep, vector_bits); visit.left(); visit.next()) {
        Real* at = tile + 2 * W * visit.vector();
        for (int part = 0; part < 2 * W; part += W) {
            const auto x0 = load(at + part), x1 = load(at + partner + part);
            store(at + part, masked ? (mask ? x1 : x0) : x1);
            store(at + partner + part, masked ? (mask ? x0 : x1) : x0);
        }
    }
}

// Vector c of each group moves to indices[c], times the phase data[c].
template <class Real>
static void sweep_permute(const Sweep& sweep, const Real* data, const std::uint32_t* indices, Real* tile, int vector_bits,
                          Real* copy) {
    constexpr int W = kLanes<Real>;
    if (sweep.num_targets == 1 && sweep.flip && indices[0] == 1) return exchange_pairs(sweep, tile, vector_bits);
    const index_t size = index_t{1} << sweep.num_targets;
    const bool masked = sweep.controls.lane_mask != 0;
    const auto mask = lane_mask<Real>(sweep.controls);
    for (Visit visit(sweep, vector_bits); visit.left(); visit.next()) {
        Real* first = tile + 2 * W * visit.vector();
        for (index_t c = 0; c < size; ++c) {
            const Real* from = first + group_offset(sweep, c, W);
            store(copy + 2 * W * c, load(from));
            store(copy + 2 * W * c + W, load(from + W));
        }
        for (index_t c = 0; c < size; ++c) {
            Real* to[1] = {first + group_offset(sweep, indices[c], W)};
            const auto re = load(copy + 2 * W * c), im = load(copy + 2 * W * c + W);
            const Real a = data[2 * c], b = data[2 * c + 1];
            typename Simd<Real>::Vec y[1][2] = {{re, im}};
            if (!sweep.flip) y[0][0] = a * re - b * im, y[0][1] = a * im + b * re;
            store_rows<Real, 1>(to, 0, y, masked, mask);
        }
    }
}

// Amplitude i of the tile becomes amplitude indices[i] times factor[i]; `copy` holds a whole tile.
template <class Real>
static void sweep_gather(const Sweep& sweep, const Real* factors, const std::uint32_t* indices, Real* tile, int vector_bits,
                         Real* copy) {
    constexpr int W = kLanes<Real>;
    const index_t vectors = index_t{1} << vector_bits;
    for (index_t k = 0; k < 2 * W * vectors; ++k) copy[k] = tile[k];
    for (index_t v = 0; v < vectors; ++v)
        for (int lane = 0; lane < W; ++lane) {
            const index_t i = v * W + lane, from = indices[i];
            const Real* source = copy + 2 * W * (from / W) + from % W;
            Real re = source[0], im = source[W];
            if (!sweep.flip) {
                const Real a = factors[2 * i], b = factors[2 * i + 1], old = re;
                re = a * old - b * im;
                im = a * im + b * old;
            }
            tile[2 * W * v + lane] = re;
            tile[2 * W * v + W + lane] = im;
        }
}

}  // namespace QSIM_ISA
}  // namespace qsim
