// ozaki/ozaki.cuh -- constants and layouts of emulated FP64, shared by the kernels of one block: scale, residues, product, columns.
// Layouts    a plane is one root of -1 modulo one m (plane 2 t + side). Operands are int8 images of shared memory: 128 entries of K
//            a row of 128 bytes, its 16-byte parts exchanged by XOR with the row's number modulo 8, so that 8 rows read by one
//            ldmatrix lie in distinct banks. Byte 4 l + i of a row is entry 32 i + l of K: a lane makes one word of 4 entries.
// Source     arXiv:2504.08009 (Ozaki scheme II); constants come from moduli.py
#pragma once
#include "common/common.cuh"
#include "common/ptx.cuh"

#ifdef QSIM_MODULI
constexpr int kModuli = QSIM_MODULI;  // known when compiled: constants become operands of the instructions that use them
#endif
constexpr int kMaxModuli = 17;
constexpr int kDepth = 128;         // entries of K in an operand's row
constexpr int kShortDepth = 256;    // SHORT_DEPTH in cuda_ozaki_tables.py
constexpr int kTileRows = 128;      // of the matrix in one tile of the product
constexpr int kTileColumns = 256;   // of the state
constexpr int kGatherColumns = 16;  // columns of a tile of the state, 2^11 amplitudes with kDepth rows
constexpr int kGatherSteps = kDepth * kGatherColumns / 256;  // amplitudes of a tile a thread
// Constants of one modulus m. Integers are reduced as floats: v + bias is the bits of the float Q m + v, Q m a little above 2^23 and
// Q a multiple of 256; `shift` is 1.5 * 2^23 - Q.
struct Modulus {
    int negative;               // -m
    float inverse, shift;
    int words[2][4];            // of re + root im and of re - root im: by what the bytes of re (low and high word) and im count
    int bias[2];                // of their flipped sign bits, with the float's bits
    int sum_words, sum_bias;    // the same for INT32 sums
    int short_bias;             // of sums of at most kShortDepth products, which are reduced without bytes in between
    float short_inverse, short_shift;
    int unused[2];              // so that weights are 16 bytes apart: assemblers load two at once
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

// The record of one column of a launch; zero at its start.
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

// The same for a sum of at most kShortDepth products: below 2^22, so that it fits a float beside a bias.
// exact: the bias B is near a multiple of m, by which what the inverse's relative error makes of B vanishes but for a part of 1 / (2 m)
__device__ __forceinline__ int short_sum_residue(int sum, const Modulus& m) {
    const int biased = sum + m.short_bias;
    return biased + __float_as_int(__fmaf_rn(__int_as_float(biased), m.short_inverse, m.short_shift)) * m.negative;
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

// Byte of `lane`'s word in an operand's row.
__device__ __forceinline__ int word_offset(int row, int lane) { return ((((lane >> 2) ^ row) & 7) << 4) | ((lane & 3) << 2); }

// An entry of K as a slot of 16 bytes: its parts as 64-bit integers with their sign bits flipped; rounds once each.
__device__ __forceinline__ uint4 integers(double re, double im) {
    const long long a = __double2ll_rn(re), b = __double2ll_rn(im);
    return make_uint4((unsigned)a, (unsigned)(a >> 32) ^ 0x80000000u, (unsigned)b, (unsigned)(b >> 32) ^ 0x80000000u);
}

// A warp puts the integers of 128 rows of a column, scaled, in place of their amplitudes; zeros where the column is of no use.
__device__ __forceinline__ void make_integers(double2* rows, int exponent, const Scheme& scheme) {
    double2* const mine = rows + (threadIdx.x & 31);
    const bool usable = exponent < kUnusable;
    const Power power(usable ? scheme.column_bits - exponent : 0);
#pragma unroll
    for (int i = 0; i < 128; i += 32) {
        const amp_t amp = *reinterpret_cast<const amp_t*>(mine + i);
        *reinterpret_cast<uint4*>(mine + i) = integers(usable ? power(amp.x) : 0.0, usable ? power(amp.y) : 0.0);
    }
    __syncwarp();
}

#ifdef QSIM_MODULI
// By modulus and lane modulo 8, what a lane gives of the matrix that slots are multiplied by; one array of a block.
constexpr int kLaneWords = kModuli * 8;
__device__ __forceinline__ void fill_lane_words(int* lane_words, const Scheme& scheme) {
    for (int i = threadIdx.x; i < kLaneWords; i += blockDim.x) lane_words[i] = scheme.moduli[i >> 3].words[i >> 2 & 1][i & 3];
}

// Writes, for every plane, the row at `at` of an operand: residues of 128 slots, by a warp. Tensor cores multiply slots, 16 bytes of K, by
// residues of powers of 256: slots 32 i + l of the words l = 8 v to 8 v + 7 give columns 2 v (the plane re + root im) and 2 v + 1, so
// that lane 4 g + q has both planes' bytes of the word l = 8 q + g.
__device__ __forceinline__ void write_residues(const uint4* slots, const int* lane_words, signed char* operand, unsigned at, int row, unsigned plane_bytes,
                                               const Scheme& scheme) {
    const int lane = threadIdx.x & 31;
    unsigned parts[2][2][4];  // [v / 2][i / 2]: word lane % 4 of the slots 32 i + 8 v + lane / 4, i fastest
#pragma unroll
    for (int n = 0; n < 4; ++n) {
        const int i = n & 2 | lane >> 3 & 1, v = 2 * (n & 1) | lane >> 4;
        load_matrices(parts[n & 1][n >> 1], shared_address(slots + 32 * i + 8 * v + (lane & 7)));
    }
    at += word_offset(row, 8 * (lane & 3) + (lane >> 2));
#pragma unroll
    for (int t = 0; t < kModuli; ++t) {
        const Modulus& m = scheme.moduli[t];
        const int word = lane_words[8 * t + (lane & 7)];
        const int bias[4] = {m.bias[0], m.bias[1], m.bias[0], m.bias[1]};
        int low[4], high[4];
        const int b[4] = {lane >> 3 == 0 ? word : 0, lane >> 3 == 1 ? word : 0, lane >> 3 == 2 ? word : 0, lane >> 3 == 3 ? word : 0};
        mma_bytes(low, parts[0][0], b[0], b[1], bias);
        mma_bytes(high, parts[0][1], b[0], b[1], bias);
        mma_bytes(low, parts[1][0], b[2], b[3], low);
        mma_bytes(high, parts[1][1], b[2], b[3], high);
        const unsigned plus = pack_bytes(reduce_byte(low[0], m), reduce_byte(low[2], m), reduce_byte(high[0], m), reduce_byte(high[2], m));
        const unsigned minus = pack_bytes(reduce_byte(low[1], m), reduce_byte(low[3], m), reduce_byte(high[1], m), reduce_byte(high[3], m));
        *reinterpret_cast<unsigned*>(operand + at) = plus;
        at += plane_bytes;  // below 2^32: a chunk's workspace
        *reinterpret_cast<unsigned*>(operand + at) = minus;
        at += plane_bytes;
    }
}
#endif

// How a tile's columns become places of its output's 64 bytes. 0: word w of 16 is the columns w, w + 16, w + 32, w + 48, as
// reconstruct.cu wants them; 8 and 16: that many neighbours are side by side, as finish.cu wants them.
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
