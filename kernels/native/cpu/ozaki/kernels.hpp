// cpu/ozaki/kernels.hpp -- residues, INT8 products and CRT sums. Included once per instruction set, which defines QSIM_ISA.
// Only plain types here, as in base/simd.hpp.
#pragma once

#include "cpu/dispatch/kernel_table.hpp"
#include "cpu/ozaki/ozaki.hpp"

#ifdef __AVX512VNNI__
#include <immintrin.h>
#endif

namespace qsim {
namespace QSIM_ISA {

constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding and subtracting it rounds to an integer

constexpr double kCoarse = 16 * kRound;         // the same to a multiple of 16

static inline double nearest(double x) { return (x + kRound) - kRound; }      // |x| < 2^51
static inline double nearest_16(double x) { return (x + kCoarse) - kCoarse; }  // |x| < 2^55

// The balanced residue of an integer below 2^40. exact: m is odd, so value / m is at least 1 / (2 m) from a tie
static inline double residue(double value, double modulus, double inverse) {
    return __builtin_fma(-modulus, nearest(value * inverse), value);
}

static void encode(const OzakiModulus& m, const double* re, const double* im, index_t count, std::int8_t* plus, std::int8_t* minus) {
    const double modulus = m.modulus, inverse = m.inverse, root = m.root;
    for (index_t j = 0; j < count; ++j) {
        // exact: integers congruent to re and im, below 2^12; which ones does not matter
        const double a = __builtin_fma(-modulus, nearest_16(re[j] * inverse), re[j]);
        const double b = __builtin_fma(-modulus, nearest_16(im[j] * inverse), im[j]) * root;
        plus[j] = static_cast<std::int8_t>(static_cast<int>(residue(a + b, modulus, inverse)));
        minus[j] = static_cast<std::int8_t>(static_cast<int>(residue(a - b, modulus, inverse)));
    }
}

static void column_sums(const std::int8_t* column, index_t size, std::int32_t& sum) {
    sum = 0;
    for (index_t k = 0; k < size; ++k) sum += column[k];
}

#ifdef __AVX512VNNI__
// kBlocks row blocks x kColumns columns in registers.
template <int kBlocks, int kColumns>
static inline void product_tile(const std::uint8_t* packed, index_t rows, index_t size, const std::int8_t* columns,
                                const std::int32_t* sums, std::int32_t* out) {
    __m512i acc[kBlocks][kColumns];
    for (int i = 0; i < kBlocks; ++i)
        for (int j = 0; j < kColumns; ++j) acc[i][j] = _mm512_set1_epi32(-128 * sums[j]);
    for (index_t k = 0; k < size; k += 4) {
        __m512i a[kBlocks];
        for (int i = 0; i < kBlocks; ++i) a[i] = _mm512_load_si512(packed + i * kOzakiRows * size + kOzakiRows * k);
        for (int j = 0; j < kColumns; ++j) {
            const __m512i b = _mm512_set1_epi32(*reinterpret_cast<const std::int32_t*>(columns + j * size + k));
            for (int i = 0; i < kBlocks; ++i) acc[i][j] = _mm512_dpbusd_epi32(acc[i][j], a[i], b);
        }
    }
    for (int i = 0; i < kBlocks; ++i)
        for (int j = 0; j < kColumns; ++j) _mm512_store_si512(out + j * rows + i * kOzakiRows, acc[i][j]);
}
#else
template <int kBlocks, int kColumns>
static inline void product_tile(const std::uint8_t* packed, index_t rows, index_t size, const std::int8_t* columns,
                                const std::int32_t* sums, std::int32_t* out) {
    for (int i = 0; i < kBlocks; ++i)
        for (int j = 0; j < kColumns; ++j) {
            std::int32_t acc[kOzakiRows];
            for (int r = 0; r < kOzakiRows; ++r) acc[r] = -128 * sums[j];
            const std::uint8_t* a = packed + i * kOzakiRows * size;
            const std::int8_t* b = columns + j * size;
            for (index_t k = 0; k < size; k += 4, a += 4 * kOzakiRows)
                for (int r = 0; r < kOzakiRows; ++r)
                    acc[r] += a[4 * r] * b[k] + a[4 * r + 1] * b[k + 1] + a[4 * r + 2] * b[k + 2] + a[4 * r + 3] * b[k + 3];
            for (int r = 0; r < kOzakiRows; ++r) out[j * rows + i * kOzakiRows + r] = acc[r];
        }
}
#endif

template <int kColumns>
static inline void product_columns(const std::uint8_t* packed, index_t rows, index_t size, const std::int8_t* columns, std::int32_t* out) {
    std::int32_t sums[kColumns];
    for (int j = 0; j < kColumns; ++j) column_sums(columns + j * size, size, sums[j]);
    index_t row = 0;
    for (; row + 2 * kOzakiRows <= rows; row += 2 * kOzakiRows)
        product_tile<2, kColumns>(packed + row * size, rows, size, columns, sums, out + row);
    if (row < rows) product_tile<1, kColumns>(packed + row * size, rows, size, columns, sums, out + row);
}

static void product(const std::uint8_t* packed, index_t rows, index_t size, const std::int8_t* columns, int num_columns, std::int32_t* out) {
    int column = 0;
    for (; column + 8 <= num_columns; column += 8) product_columns<8>(packed, rows, size, columns + column * size, out + column * rows);
    for (; column < num_columns; ++column) product_columns<1>(packed, rows, size, columns + column * size, out + column * rows);
}

static void reduce(const OzakiModulus& m, const std::int32_t* sums, index_t count, std::int8_t* out) {
    const double modulus = m.modulus, inverse = m.inverse;
    for (index_t j = 0; j < count; ++j) out[j] = static_cast<std::int8_t>(static_cast<int>(residue(sums[j], modulus, inverse)));
}

static void accumulate(const OzakiModulus& m, const std::int8_t* plus, const std::int8_t* minus, index_t count, double* sums) {
    double *re_high = sums, *re_low = sums + count, *im_high = sums + 2 * count, *im_low = sums + 3 * count;
    for (index_t j = 0; j < count; ++j) {
        const double sum = plus[j] + minus[j], difference = plus[j] - minus[j];
        re_high[j] = __builtin_fma(sum, m.re_high, re_high[j]);  // exact: split_weight leaves room for every sum
        re_low[j] = __builtin_fma(sum, m.re_low, re_low[j]);
        im_high[j] = __builtin_fma(difference, m.im_high, im_high[j]);
        im_low[j] = __builtin_fma(difference, m.im_low, im_low[j]);
    }
}

// (high + low modulo 1) * product, rounded once but for terms of 2^-100.
static inline double scaled_fraction(double high, double low, double product_high, double product_low) {
    const double fraction = high - nearest(high);  // exact
    const double sum = fraction + low, part = sum - fraction;
    const double rest = (fraction - (sum - part)) + (low - part);  // exact: sum + rest = fraction + low
    return __builtin_fma(sum, product_high, __builtin_fma(sum, product_low, rest * product_high));
}

static void finish(double product_high, double product_low, const double* sums, index_t count, double* re, double* im) {
    for (index_t j = 0; j < count; ++j) {
        re[j] = scaled_fraction(sums[j], sums[count + j], product_high, product_low);
        im[j] = scaled_fraction(sums[2 * count + j], sums[3 * count + j], product_high, product_low);
    }
}

}  // namespace QSIM_ISA
}  // namespace qsim
