// cpu/tile/dense.hpp -- matrices inside a tile.
// Work  kDense: 4 K fused multiply-adds per complex amplitude of a K x K matrix (2 K where it is real).
#pragma once

#include "base/simd.hpp"
#include "cpu/tile/program.hpp"
#include "cpu/tile/visit.hpp"

namespace qsim {
namespace QSIM_ISA {

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

}  // namespace QSIM_ISA
}  // namespace qsim
