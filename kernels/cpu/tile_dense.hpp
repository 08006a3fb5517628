// tile_dense.hpp -- matrices, permutations and lane exchanges inside a tile.
// Work  kDense: 4 K fused multiply-adds per complex amplitude of a K x K matrix (2 K where it is real).
#pragma once

#include "simd.hpp"
#include "tile_program.hpp"
#include "visit.hpp"

namespace qsim {
namespace QSIM_ISA {

// All ones in the lanes whose number satisfies the controls.
template <class Real>
QSIM_INLINE typename Simd<Real>::Mask lane_mask(const Controls& controls) {
    typename Simd<Real>::Mask mask{};
    for (int lane = 0; lane < kLanes<Real>; ++lane)
        mask[lane] = (lane & controls.lane_mask) == controls.lane_value ? -1 : 0;
    return mask;
}

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

// Offsets (in numbers) of the 2^k vectors of a group, from its first.
QSIM_INLINE index_t group_offset(const Sweep& sweep, index_t member, int lanes) {
    return 2 * lanes * deposit(member, sweep.targets, sweep.num_targets);
}

// kRows x kColumns outputs: y[r] = sum_c matrix[r][c] x[c]; `matrix` packed as [c][r](re, im), x at x_at[c] + column.
template <class Real, int kRows, int kColumns, bool kReal>
QSIM_INLINE void product(const Real* matrix, index_t size, const Real* const* columns, const index_t* x_at,
                         typename Simd<Real>::Vec (&y)[kRows][kColumns][2]) {
    using Vec = typename Simd<Real>::Vec;
    constexpr int W = kLanes<Real>;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
        for (int j = 0; j < kColumns; ++j) y[r][j][0] = y[r][j][1] = Vec{};
    for (index_t c = 0; c < size; ++c) {
        Vec re[kColumns], im[kColumns];
#pragma GCC unroll 2
        for (int j = 0; j < kColumns; ++j) re[j] = load(columns[j] + x_at[c]), im[j] = load(columns[j] + x_at[c] + W);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
            const Vec a = broadcast<Real>(matrix[0]), b = broadcast<Real>(matrix[1]);
            matrix += 2;
#pragma GCC unroll 2
            for (int j = 0; j < kColumns; ++j) {
                y[r][j][0] += a * re[j];
                y[r][j][1] += a * im[j];
                if (!kReal) y[r][j][0] -= b * im[j], y[r][j][1] += b * re[j];
            }
        }
    }
}

template <class Real, int kColumns>
QSIM_INLINE void store_rows(Real* const* columns, index_t at, const typename Simd<Real>::Vec (&y)[kColumns][2], bool masked,
                            typename Simd<Real>::Mask mask) {
    constexpr int W = kLanes<Real>;
#pragma GCC unroll 2
    for (int j = 0; j < kColumns; ++j) {
        Real* to = columns[j] + at;
        store(to, masked ? (mask ? y[j][0] : load(to)) : y[j][0]);
        store(to + W, masked ? (mask ? y[j][1] : load(to + W)) : y[j][1]);
    }
}

// One group column (or two): the matrix on the vectors at columns[j].
template <class Real, int kRows, int kColumns, bool kReal>
QSIM_INLINE void dense_group(const Sweep& sweep, const Real* data, Real* const* columns, const index_t* at,
                             const index_t* packed, Real* copy, bool masked, typename Simd<Real>::Mask mask) {
    constexpr int W = kLanes<Real>;
    const index_t size = index_t{1} << sweep.num_targets;
    const Real* source[kColumns];
    const index_t* source_at = at;
    if (size > kRows) {  // rows are written before the last is computed: work from a copy
        for (int j = 0; j < kColumns; ++j) {
            source[j] = copy + 2 * W * j;
            for (index_t c = 0; c < size; ++c) {
                store(copy + 2 * W * (kColumns * c + j), load(columns[j] + at[c]));
                store(copy + 2 * W * (kColumns * c + j) + W, load(columns[j] + at[c] + W));
            }
        }
        source_at = packed;
    } else {
        for (int j = 0; j < kColumns; ++j) source[j] = columns[j];
    }
    for (index_t row = 0; row < size; row += kRows) {
        typename Simd<Real>::Vec y[kRows][kColumns][2];
        product<Real, kRows, kColumns, kReal>(data + 2 * size * row, size, source, source_at, y);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) store_rows<Real, kColumns>(columns, at[row + r], y[r], masked, mask);
    }
}

template <class Real, int kRows, bool kReal>
static void dense(const Sweep& sweep, const Real* data, Real* tile, int vector_bits, Real* scratch) {
    constexpr int W = kLanes<Real>;
    constexpr int kWide = QSIM_VECTOR_BYTES >= 64 ? 2 : 1;  // columns that fit the register file
    const index_t size = index_t{1} << sweep.num_targets;
    index_t* at = reinterpret_cast<index_t*>(scratch);  // scratch: 3 * size offsets, then the copied columns
    index_t* packed_one = at + size;
    index_t* packed_wide = packed_one + size;
    Real* copy = reinterpret_cast<Real*>(reinterpret_cast<char*>(scratch) + (3 * size * sizeof(index_t) + 63) / 64 * 64);
    for (index_t c = 0; c < size; ++c) {
        at[c] = group_offset(sweep, c, W);
        packed_one[c] = 2 * W * c;
        packed_wide[c] = 2 * W * kWide * c;
    }
    const bool masked = sweep.controls.lane_mask != 0;
    const auto mask = lane_mask<Real>(sweep.controls);
    for (Visit visit(sweep, vector_bits); visit.left(); visit.next()) {
        Real* columns[2] = {tile + 2 * W * visit.vector(), nullptr};
        if (kWide == 2) {
            visit.next();
            if (visit.left()) columns[1] = tile + 2 * W * visit.vector();
        }
        if (kWide == 1 || columns[1]) dense_group<Real, kRows, kWide, kReal>(sweep, data, columns, at, packed_wide, copy, masked, mask);
        else dense_group<Real, kRows, 1, kReal>(sweep, data, columns, at, packed_one, copy, masked, mask);
    }
}

// Matrices of one or two targets: the vectors of a group stay in registers.
template <class Real, int kCount, bool kReal, bool kMasked>
static void dense_small(const Sweep& sweep, const Real* data, Real* tile, int vector_bits) {
    using Vec = typename Simd<Real>::Vec;
    constexpr int W = kLanes<Real>, kSize = 1 << kCount;
    constexpr int kWide = QSIM_VECTOR_BYTES >= 64 ? 2 : 1;
    const auto mask = lane_mask<Real>(sweep.controls);
    index_t at[kSize];
    for (int c = 0; c < kSize; ++c) at[c] = group_offset(sweep, c, W);
    auto group_columns = [&](auto columns, Real* const* first) __attribute__((always_inline)) {
        constexpr int kColumns = decltype(columns)::value;
        Vec x[kSize][kColumns][2];
#pragma GCC unroll 4
        for (int c = 0; c < kSize; ++c)
#pragma GCC unroll 2
            for (int j = 0; j < kColumns; ++j) x[c][j][0] = load(first[j] + at[c]), x[c][j][1] = load(first[j] + at[c] + W);
#pragma GCC unroll 2
        for (int r = 0; r < kSize; r += 2) {  // two rows at a time: enough independent sums to hide the latency
            Vec y[2][kColumns][2];
#pragma GCC unroll 4
            for (int c = 0; c < kSize; ++c) {
#pragma GCC unroll 2
                for (int k = 0; k < 2; ++k) {
                    const Real* entry = data + 2 * (kSize * c + r + k);  // packed by columns: all rows are one block
                    const Vec a = broadcast<Real>(entry[0]), b = broadcast<Real>(entry[1]);
#pragma GCC unroll 2
                    for (int j = 0; j < kColumns; ++j) {
                        const Vec re = x[c][j][0], im = x[c][j][1];
                        y[k][j][0] = c ? y[k][j][0] + a * re : a * re;
                        y[k][j][1] = c ? y[k][j][1] + a * im : a * im;
                        if (!kReal) y[k][j][0] -= b * im, y[k][j][1] += b * re;
                    }
                }
            }
#pragma GCC unroll 2
            for (int k = 0; k < 2; ++k)
#pragma GCC unroll 2
                for (int j = 0; j < kColumns; ++j) {
                    Real* to = first[j] + at[r + k];
                    store(to, kMasked ? (mask ? y[k][j][0] : x[r + k][j][0]) : y[k][j][0]);
                    store(to + W, kMasked ? (mask ? y[k][j][1] : x[r + k][j][1]) : y[k][j][1]);
                }
        }
    };
    for (Visit visit(sweep, vector_bits); visit.left(); visit.next()) {
        Real* first[2] = {tile + 2 * W * visit.vector(), nullptr};
        if (kWide == 2) {
            visit.next();
            if (visit.left()) first[1] = tile + 2 * W * visit.vector();
        }
        if (kWide == 1 || first[1]) group_columns(std::integral_constant<int, kWide>{}, first);
        else group_columns(std::integral_constant<int, 1>{}, first);
    }
}

template <class Real, int kCount>
static void dense_small_any(const Sweep& sweep, const Real* data, Real* tile, int vector_bits) {
    const bool real = sweep.flags & 1, masked = sweep.controls.lane_mask != 0;
    if (real) {
        if (masked) dense_small<Real, kCount, true, true>(sweep, data, tile, vector_bits);
        else dense_small<Real, kCount, true, false>(sweep, data, tile, vector_bits);
    } else {
        if (masked) dense_small<Real, kCount, false, true>(sweep, data, tile, vector_bits);
        else dense_small<Real, kCount, false, false>(sweep, data, tile, vector_bits);
    }
}

template <class Real>
static void sweep_dense(const Sweep& sweep, const Real* data, Real* tile, int vector_bits, Real* scratch) {
    if (sweep.num_targets == 1) return dense_small_any<Real, 1>(sweep, data, tile, vector_bits);
    if (sweep.num_targets == 2) return dense_small_any<Real, 2>(sweep, data, tile, vector_bits);
    if (sweep.flags & 1) dense<Real, 4, true>(sweep, data, tile, vector_bits, scratch);
    else dense<Real, 4, false>(sweep, data, tile, vector_bits, scratch);
}

// The matrix (row-major) on any positions, one amplitude at a time; targets and vertical controls are tile positions.
template <class Real>
static void sweep_dense_any(const Sweep& sweep, const Real* data, Real* tile, int tile_bits, Real* copy) {
    constexpr int W = kLanes<Real>;
    const index_t size = index_t{1} << sweep.num_targets;
    auto at = [&](index_t i) { return tile + 2 * W * (i / W) + i % W; };
    for (Visit visit(sweep, tile_bits); visit.left(); visit.next()) {
        const index_t origin = visit.vector();
        for (index_t c = 0; c < size; ++c) {
            const Real* from = at(origin | deposit(c, sweep.targets, sweep.num_targets));
            copy[c] = from[0], copy[size + c] = from[W];
        }
        for (index_t r = 0; r < size; ++r) {
            const Real* row = data + 2 * size * r;  // re of the row, then im
            Real re = 0, im = 0;
            for (index_t c = 0; c < size; ++c) {
                re += row[c] * copy[c] - row[size + c] * copy[size + c];
                im += row[c] * copy[size + c] + row[size + c] * copy[c];
            }
            Real* to = at(origin | deposit(r, sweep.targets, sweep.num_targets));
            to[0] = re, to[W] = im;
        }
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
