// cpu/tile/rotate.hpp -- one-qubit rotations, up to three vertical positions or all lane positions per sweep.
//
// A real orthogonal 2x2 matrix is, after dividing by its larger entry (the scale is deferred to the scatter) and, where
// that entry is off the diagonal, reading the pair in reverse:  y0 = x0 + t x1,  y1 = s (x1 - t x0)  with s = 1 for a
// rotation and -1 for a reflection (Hadamard: t = 1, s = -1). A matrix with imaginary off-diagonal likewise:
// y0 = x0 + i t x1,  y1 = x1 + i t x0. So each costs 2 fused multiply-adds per amplitude.
#pragma once

#include <cstddef>

#include "base/simd.hpp"
#include "cpu/tile/program.hpp"
#include "cpu/tile/visit.hpp"

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
    // distance from a vector to the one with target j set; reading starts where the reversed targets are set
    std::ptrdiff_t step[3] = {0, 0, 0}, read_step[3] = {0, 0, 0}, read_origin = 0;
    for (int j = 0; j < kCount; ++j) {
        step[j] = static_cast<std::ptrdiff_t>(2 * W) << sweep.targets[j];
        const bool reversed = sweep.flip >> j & 1;
        read_step[j] = reversed ? -step[j] : step[j];
        if (reversed) read_origin += step[j];
    }
    const std::ptrdiff_t pair = step[0] + step[1], read_pair = read_step[0] + read_step[1];
    auto member = [](auto* origin, int i, std::ptrdiff_t step0, std::ptrdiff_t step1, std::ptrdiff_t both, std::ptrdiff_t step2)
                      __attribute__((always_inline)) {
        auto* half = i & 4 ? origin + step2 : origin;
        return (i & 3) == 0 ? half : (i & 3) == 1 ? half + step0 : (i & 3) == 2 ? half + step1 : half + both;
    };
    Vec t[kCount];
    for (int j = 0; j < kCount; ++j) t[j] = broadcast<Real>(data[j]);
    for (Visit visit(sweep, vector_bits); visit.left(); visit.next()) {
        Real* origin = tile + 2 * W * visit.vector();  // the group's vector with every target 0
        Vec x[kSize][2];
#pragma GCC unroll 8
        for (int i = 0; i < kSize; ++i) {
            const Real* from = member(origin + read_origin, i, read_step[0], read_step[1], read_pair, read_step[2]);
            x[i][0] = load(from), x[i][1] = load(from + W);
            pin(x[i][0]), pin(x[i][1]);
        }
        rotate_bit<Vec, kCount, 0, kReflect & 1, kImaginary>(x, t[0]);
        if constexpr (kCount > 1) rotate_bit<Vec, kCount, 1, (kReflect >> 1) & 1, kImaginary>(x, t[1]);
        if constexpr (kCount > 2) rotate_bit<Vec, kCount, 2, (kReflect >> 2) & 1, kImaginary>(x, t[2]);
#pragma GCC unroll 8
        for (int i = 0; i < kSize; ++i) {
            Real* to = member(origin, i, step[0], step[1], pair, step[2]);
            store(to, x[i][0]), store(to + W, x[i][1]);
        }
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
    else if constexpr (kMaxRotations > 2) rotate_any<Real, 3>(sweep, data, tile, vector_bits);
}

// y = own[lane] x + other[lane] x(flipped lane), for each lane position in kMask in turn; `other` times i where imaginary.
// kUnit: own is 1 everywhere (its scale is deferred), half the operations.
template <class Real, int kMask, bool kImaginary, bool kUnit>
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
        if (!kUnit) re = own_j * re, im = own_j * im;
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
static void lane_real_masked(const Sweep& sweep, const Real* data, Real* tile, int vector_bits) {
    const bool imaginary = sweep.flags & 0x80, unit = sweep.flip;
    if ((sweep.flags & 0xf) != kMask) {
        if constexpr (kMask > 1) lane_real_masked<Real, kMask - 1>(sweep, data, tile, vector_bits);
    } else if (imaginary) {
        if (unit) lane_real<Real, kMask, true, true>(data, tile, vector_bits);
        else lane_real<Real, kMask, true, false>(data, tile, vector_bits);
    } else {
        if (unit) lane_real<Real, kMask, false, true>(data, tile, vector_bits);
        else lane_real<Real, kMask, false, false>(data, tile, vector_bits);
    }
}

template <class Real>
static void sweep_lane_real(const Sweep& sweep, const Real* data, Real* tile, int vector_bits) {
    lane_real_masked<Real, kLanes<Real> - 1>(sweep, data, tile, vector_bits);
}

}  // namespace QSIM_ISA
}  // namespace qsim
