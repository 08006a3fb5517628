// ozaki.cuh -- constants and layouts of emulated FP64, shared by the kernels of one block: scale, residues, product, columns.
// Layouts    a plane is one root of -1 modulo one m (plane 2 t + side). Operands are int8 images of shared memory: 128 entries of K
//            a row of 128 bytes, its 16-byte parts exchanged by XOR with the row's number modulo 8, so that 8 rows read by one
//            ldmatrix lie in distinct banks. Byte 4 l + i of a row is entry 32 i + l of K: a lane makes one word of 4 entries.
// Source     arXiv:2504.08009 (Ozaki scheme II); constants come from moduli.py
#pragma once
#include "common.cuh"
#include "ozaki_ptx.cuh"

#ifdef QSIM_MODULI
constexpr int kModuli = QSIM_MODULI;  // known when compiled: constants become operands of the instructions that use them
#endif
constexpr int kMaxModuli = 17;
constexpr int kDepth = 128;         // entries of K in an operand's row
constexpr int kTileRows = 128;      // of the matrix in one tile of the product
constexpr int kTileColumns = 256;   // of the state
constexpr int kGatherColumns = 16;  // columns of a tile of the state, 2^11 amplitudes with kDepth rows
constexpr int kGatherSteps = kDepth * kGatherColumns / 256;  // amplitudes of a tile a thread
// Constants of one modulus m. Integers are reduced as floats: v + bias is the bits of the float Q m + v, Q m a little above 2^23 and
// Q a multiple of 256; `shift` is 1.5 * 2^23 - Q.
struct Modulus {
    int negative;               // -m
    float inverse, shift;
    int re_words[2], im_words[2];  // powers of 256, times the root for im, as bytes: balanced residues
    int re_bias, im_bias;       // of -2^63, times the root for im; re_bias with the float's bits
    int sum_words, sum_bias;    // the same for INT32 sums with their sign bit flipped
    int unused;
    double re_high, re_low, im_high, im_low;  // CRT weights
};

struct Scheme {
    Modulus moduli[kMaxModuli];
    double offset[4];  // where the four sums over the moduli start: less what ozaki_reconstruct's biased integers add
    double product_high, product_low;
    double tolerance;  // of a column's check, over its scale, squared
    int num_moduli, matrix_bits, column_bits, matrix_exponent;
};

// Where a block's columns lie in the state, and which of them a launch does.
struct Columns {
    index_t base;         // basis state of the launch's first column at row 0
    index_t first;        // that column's number
    index_t num_columns;  // of the launch
    unsigned row_stride;  // columns between two rows of the workspaces: num_columns padded to whole tiles
    unsigned plane_bytes;  // of the workspaces: K * row_stride
    int depth_blocks;     // K / kDepth
};

// What is known of each column of a launch; zero at its start.
struct ColumnRecord {
    double square, rescued;         // of its norm; rescued: of its amplitudes times 2^600
    double expected_re, expected_im;  // the check row times the column
    double found_re, found_im;        // weights times the result, over the column's scale
    int exponent;                     // of its scale, or kUnusable, or kZero
    unsigned arrived;                 // blocks that have added to the records of this column and its neighbours
};

// Low byte: the balanced residue of v, where biased = v + bias and |v| < 2^19.
// exact: m is odd, so v / m is at least 1 / (2 m) from a tie, and the relative error of `inverse` moves Q + v / m by less
__device__ __forceinline__ int reduce_byte(int biased, const Modulus& m) {
    return biased + __float_as_int(__fmaf_rn(__int_as_float(biased), m.inverse, m.shift)) * m.negative;
}

// Low byte: the balanced residue of an INT32 sum.
__device__ __forceinline__ int sum_residue(int sum, const Modulus& m) {
    return reduce_byte(dp4a_us((unsigned)sum ^ 0x80000000u, m.sum_words, m.sum_bias), m);
}

__device__ __forceinline__ unsigned pack_bytes(int a, int b, int c, int d) {
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

// value * 2^exponent in two steps, for exponents beyond a double's range; rounds at most once.
struct Power {
    double first, second;
    __device__ explicit Power(int exponent) {
        const int half = exponent / 2;
        first = __hiloint2double((1023 + half) << 20, 0);
        second = __hiloint2double((1023 + exponent - half) << 20, 0);
    }
    __device__ double operator()(double value) const { return value * first * second; }
};

constexpr int kUnusable = 1 << 20;  // exponent of a column with no finite norm, or whose check failed
constexpr int kZero = 1 << 21;      // of a column of zeros

constexpr double kSmallSquare = 0x1p-900;  // of a norm below which squares may have vanished: it is taken of the amplitudes times 2^600

// The least e with norm <= 2^e (1 + 2^-11).
__device__ __forceinline__ int scale_exponent(double square, double rescued) {
    const bool small = square < kSmallSquare;
    const double norm = sqrt(small ? rescued : square);
    if (!(norm <= 1.7976931348623157e308)) return kUnusable;
    if (norm == 0) return kZero;
    const int high = __double2hiint(norm);  // a norm of the rescued square is no denormal
    const double mantissa = __hiloint2double((high & 0xFFFFF) | 0x3FE00000, __double2loint(norm));  // in [1/2, 1)
    return (high >> 20) - 1022 - (mantissa <= 0.500244140625) - (small ? 600 : 0);
}

// Four entries of K as integers with their sign bit flipped: low and high words of real and imaginary parts.
struct Entries {
    unsigned re_low[4], re_high[4], im_low[4], im_high[4];
    __device__ void set(int i, double re, double im) {  // rounds once each
        const long long a = __double2ll_rn(re), b = __double2ll_rn(im);
        re_low[i] = (unsigned)a, re_high[i] = (unsigned)(a >> 32) ^ 0x80000000u;
        im_low[i] = (unsigned)b, im_high[i] = (unsigned)(b >> 32) ^ 0x80000000u;
    }
    // The two planes' bytes of four entries.
    __device__ void residues(const Modulus& m, unsigned& plus, unsigned& minus) const {
        int p[4], q[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int re = dp4a_us(re_low[i], m.re_words[0], dp4a_us(re_high[i], m.re_words[1], m.re_bias));
            const int im = dp4a_us(im_low[i], m.im_words[0], dp4a_us(im_high[i], m.im_words[1], m.im_bias));
            p[i] = reduce_byte(re + im, m);
            q[i] = reduce_byte(re - im, m);
        }
        plus = pack_bytes(p[0], p[1], p[2], p[3]);
        minus = pack_bytes(q[0], q[1], q[2], q[3]);
    }
};

// Byte of `lane`'s word in an operand's row.
__device__ __forceinline__ int word_offset(int row, int lane) { return ((((lane >> 2) ^ row) & 7) << 4) | ((lane & 3) << 2); }

// Writes a lane's word of a column's row for every plane.
__device__ __forceinline__ void write_residues(const Entries& entries, signed char* operand, unsigned at, unsigned plane_bytes, const Scheme& scheme) {
#ifdef QSIM_MODULI
#pragma unroll
    for (int t = 0; t < kModuli; ++t) {
#else
    for (int t = 0; t < scheme.num_moduli; ++t) {
#endif
        unsigned plus, minus;
        entries.residues(scheme.moduli[t], plus, minus);
        *reinterpret_cast<unsigned*>(operand + at) = plus;
        at += plane_bytes;  // below 2^32: a chunk's workspace
        *reinterpret_cast<unsigned*>(operand + at) = minus;
        at += plane_bytes;
    }
}

// How a tile's columns become places of its output's 64 bytes. 0: word w of 16 is the columns w, w + 16, w + 32, w + 48, as
// ozaki_reconstruct.cu wants them; 8 and 16: that many neighbours are side by side, as ozaki_finish.cu wants them.
#ifndef QSIM_WHOLE
#define QSIM_WHOLE 0
#endif
__device__ __forceinline__ int output_place(int c) {
    if (QSIM_WHOLE == 0) return 4 * (c & 15) | (c >> 4 & 3);
    if (QSIM_WHOLE == 16) return (c & 48) | (c & 3) << 2 | (c >> 2 & 3);  // word w of 4: w, w + 4, w + 8, w + 12
    return (c & 56) | (c & 1) << 2 | (c >> 1 & 3);                        // word w of 2: w, w + 2, w + 4, w + 6
}

// Row of the operand that holds column c: chosen so that a thread of the product has 16 places of a row side by side.
__device__ __forceinline__ int operand_row(int c) {
    const int place = output_place(c & 63);
    return (c & ~63) | ((place & 14) << 2) | ((place & 48) >> 3) | (place & 1);
}

// The product's output: per plane blocks of 64 rows and 256 columns, columns fastest, each 16 KiB: [16 rows][8 rows][64 columns],
// the last 512 bytes as 8 rows of 64 places, or as 4 quarters of the places, each 8 rows of 16, rows exchanged by XOR so that a
// thread's 16 bytes lie in other banks than its neighbours'. A warp's store is 512 bytes side by side.
constexpr unsigned kOutBlock = 64 * 256;
__device__ __forceinline__ unsigned out_place(int row, int group, int quarter) {
    const unsigned block = (row & 48) * 256 | (row & 8) * 256 | group * 512;
    return block + (QSIM_WHOLE == 0 ? (row & 7) * 64 + quarter * 16 : quarter * 128 + ((row ^ 2 * quarter) & 7) * 16);
}

// Whether a column's check holds: the exponent by which it goes back to the state, or kUnusable. One thread a column.
__device__ __forceinline__ int judge(const ColumnRecord& record, double found_re, double found_im, index_t number, index_t* report,
                                     const Scheme& scheme) {
    const int exponent = record.exponent;
    const Power down(exponent < kUnusable ? -exponent : 0);
    const double re = found_re - down(record.expected_re), im = found_im - down(record.expected_im);
    const double residual = re * re + im * im;
    const bool good = exponent < kUnusable && residual <= scheme.tolerance;
    if (report != nullptr && exponent != kZero) {  // exact: zero stays zero
        if (good) atomicMax(report + 1, (index_t)__double_as_longlong(residual));  // exact: bits of doubles from 0 on are ordered
        else report[2 + atomicAdd(report, 1ull)] = number;
    }
    return good ? exponent + scheme.matrix_exponent : kUnusable;
}
