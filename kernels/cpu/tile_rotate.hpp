// tile_rotate.hpp -- one-qubit rotations, up to three vertical positions or all lane positions per sweep.
//
// A real orthogonal 2x2 matrix is, after dividing by its larger entry (the scale is deferred to the scatter) and, where
// that entry is off the diagonal, reading the pair in reverse:  y0 = x0 + t x1,  y1 = s (x1 - t x0)  with s = 1 for a
// rotation and -1 for a reflection (Hadamard: t = 1, s = -1). A matrix with imaginary off-diagonal likewise:
// y0 = x0 + i t x1,  y1 = x1 + i t x0. So each costs 2 fused multiply-adds per amplitude.
#pragma once

#include "simd.hpp"
#include "tile_program.hpp"
#include "visit.hpp"

namespace qsim {
namespace QSIM_ISA {

// x: 2^kCount complex vectors (re, im); the rotation on bit kBit of their number.
template <class Vec, int kCount, int kBit, int kReflect, bool kImaginary>
QSIM_INLINE void rotate_bit(Vec (&x)[1 << kCount][2], Vec t) {
#pragma GCC unroll 8
    for (int i = 0; i < 1 << kCount; ++i) {
        if (i >> kBit & 1) continue;
        const int j = i | 1 << kBit;
        const Vec re0 = x[i][0], im0 = x[i][1], re1 = x[j][0], im1 = x[j][1];
        if (kImaginary) {
            x[i][0] = re0 - t * im1;
            x[i][1] = im0 + t * re1;
            x[j][0] = re1 - t * im0;
            x[j][1] = im1 + t * re0;
        } else {
            x[i][0] = re0 + t * re1;
            x[i][1] = im0 + t * im1;
            x[j][0] = kReflect ? t * re0 - re1 : re1 - t * re0;
            x[j][1] = kReflect ? t * im0 - im1 : im1 - t * im0;
        }
    }
}

template <class Real, int kCount, int kReflect, bool kImaginary>
static void rotate(const Sweep& sweep, const Real* data, Real* tile, int vector_bits) {
    using Vec = typename Simd<Real>::Vec;
    constexpr int W = kLanes<Real>, kSize = 1 << kCount;
    index_t from[kSize], to[kSize];
    for (int i = 0; i < kSize; ++i) {
        to[i] = 2 * W * deposit(i, sweep.targets, kCount);
        from[i] = 2 * W * deposit(i ^ sweep.flip, sweep.targets, kCount);
    }
    Vec t[kCount];
    for (int j = 0; j < kCount; ++j) t[j] = broadcast<Real>(data[j]);
    for (Visit visit(sweep, vector_bits); visit.left(); visit.next()) {
        Real* origin = tile + 2 * W * visit.vector();  // the group's vector with every target 0
        Vec x[kSize][2];
#pragma GCC unroll 8
        for (int i = 0; i < kSize; ++i) x[i][0] = load(origin + from[i]), x[i][1] = load(origin + from[i] + W);
        rotate_bit<Vec, kCount, 0, kReflect & 1, kImaginary>(x, t[0]);
        if constexpr (kCount > 1) rotate_bit<Vec, kCount, 1, (kReflect >> 1) & 1, kImaginary>(x, t[1]);
        if constexpr (kCount > 2) rotate_bit<Vec, kCount, 2, (kReflect >> 2) & 1, kImaginary>(x, t[2]);
#pragma GCC unroll 8
        for (int i = 0; i < kSize; ++i) store(origin + to[i], x[i][0]), store(origin + to[i] + W, x[i][1]);
    }
}

template <class Real, int kCount>
static void rotate_any(const Sweep& sweep, const Real* data, Real* tile, int vector_bits) {
    if (sweep.flags & 0x80) return rotate<Real, kCount, 0, true>(sweep, data, tile, vector_bits);
    switch (sweep.flags & ((1 << kCount) - 1)) {
        case 0: return rotate<Real, kCount, 0, false>(sweep, data, tile, vector_bits);
        case 1: return rotate<Real, kCount, 1, false>(sweep, data, tile, vector_bits);
        case 2: return rotate<Real, kCount, 2, false>(sweep, data, tile, vector_bits);
        case 3: return rotate<Real, kCount, 3, false>(sweep, data, tile, vector_bits);
        case 4: return rotate<Real, kCount, 4, false>(sweep, data, tile, vector_bits);
        case 5: return rotate<Real, kCount, 5, false>(sweep, data, tile, vector_bits);
        case 6: return rotate<Real, kCount, 6, false>(sweep, data, tile, vector_bits);
        default: return rotate<Real, kCount, 7, false>(sweep, data, tile, vector_bits);
    }
}

template <class Real>
static void sweep_rotation(const Sweep& sweep, const Real* data, Real* tile, int vector_bits) {
    if (sweep.num_targets == 1) rotate_any<Real, 1>(sweep, data, tile, vector_bits);
    else if (sweep.num_targets == 2) rotate_any<Real, 2>(sweep, data, tile, vector_bits);
    else rotate_any<Real, 3>(sweep, data, tile, vector_bits);
}

// y = own[lane] x + other[lane] x(flipped lane), for each lane position in kMask in turn; `other` times i where imaginary.
template <class Real, int kMask, bool kImaginary>
static void lane_real(const Real* data, Real* tile, int vector_bits) {
    using Vec = typename Simd<Real>::Vec;
    constexpr int W = kLanes<Real>;
    Vec own[4], other[4];
    for (int j = 0, k = 0; j < 4; ++j) {
        own[j] = other[j] = Vec{};
        if (kMask >> j & 1) own[j] = load(data + 2 * W * k), other[j] = load(data + 2 * W * k + W), ++k;
    }
    auto step = [](auto flip, Vec own_j, Vec other_j, Vec& re, Vec& im) {
        const Vec partner_re = flip(re), partner_im = flip(im);
        re = own_j * re;
        im = own_j * im;
        if (kImaginary) re -= other_j * partner_im, im += other_j * partner_re;
        else re += other_j * partner_re, im += other_j * partner_im;
    };
    const index_t vectors = index_t{1} << vector_bits;
    for (index_t v = 0; v < vectors; ++v) {
        Vec re = load(tile + 2 * W * v), im = load(tile + 2 * W * v + W);
        if constexpr (kMask & 1) step([](Vec x) { return flip_lanes<Real, 0>(x); }, own[0], other[0], re, im);
        if constexpr ((kMask & 2) != 0 && W > 2) step([](Vec x) { return flip_lanes<Real, 1>(x); }, own[1], other[1], re, im);
        if constexpr ((kMask & 4) != 0 && W > 4) step([](Vec x) { return flip_lanes<Real, 2>(x); }, own[2], other[2], re, im);
        if constexpr ((kMask & 8) != 0 && W > 8) step([](Vec x) { return flip_lanes<Real, 3>(x); }, own[3], other[3], re, im);
        store(tile + 2 * W * v, re);
        store(tile + 2 * W * v + W, im);
    }
}

template <class Real, int kMask>
static void lane_real_masked(int mask, bool imaginary, const Real* data, Real* tile, int vector_bits) {
    if (mask == kMask) {
        if (imaginary) lane_real<Real, kMask, true>(data, tile, vector_bits);
        else lane_real<Real, kMask, false>(data, tile, vector_bits);
    } else if constexpr (kMask > 1) {
        lane_real_masked<Real, kMask - 1>(mask, imaginary, data, tile, vector_bits);
    }
}

template <class Real>
static void sweep_lane_real(const Sweep& sweep, const Real* data, Real* tile, int vector_bits) {
    lane_real_masked<Real, kLanes<Real> == 1 ? 1 : kLanes<Real> - 1>(sweep.flags & 0xf, sweep.flags & 0x80, data, tile, vector_bits);
}

}  // namespace QSIM_ISA
}  // namespace qsim
