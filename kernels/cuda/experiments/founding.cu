// experiments/founding.cu -- the founding design: a real product by a list of INT8 products, each sum reduced, put together by CRT and
// scaled in the kernel that made it; nothing of a single modulus is written to memory.
// Arrays     left int8 [plane][rows][depth], right int8 [plane][columns][depth], padded to whole tiles with zeros;
//            out [rows][columns] double, or what QSIM_LAYER names
// Launch     256 threads a tile of 128 x 64, rows fastest, exactly one block a tile; founding_naive: 256 threads, one entry a thread
// Work       2 depth operations an entry and product: bound by the tensor cores
// Layout     K in steps of 32 bytes through two buffers; a row's two 16-byte parts are exchanged in every other group of 4 rows, so
//            that the 8 rows of one matrix load lie in distinct banks; a warp's part is 32 x 32
// Exactness  sums in INT32; CRT sums wrap modulo 2^64, which centres them; one rounding to an integer, one sum of doubles a pass
// Source     PTX ISA, mma.sync.m16n8k32 .s8 fragment layout; the lists are made by founding.py
#include "ozaki/ozaki.cuh"

#ifndef QSIM_LAYER
#define QSIM_LAYER 0  // 0 the product; of one list entry: 1 raw sums int32, 2 residues int8; 3 integers of one pass, int64
#endif
constexpr bool kCrt = QSIM_CRT;  // residues and CRT; else the sums are digits' of one level
constexpr int kRows = 128, kColumns = 64, kStep = 32, kMaxProducts = 64;
constexpr unsigned kLeftBytes = kRows * kStep, kStageBytes = kLeftBytes + kColumns * kStep;

#if QSIM_LAYER == 0
using out_t = double;
#elif QSIM_LAYER == 1
using out_t = int;
#elif QSIM_LAYER == 2
using out_t = signed char;
#else
using out_t = long long;
#endif

struct Founding {
    double scale[kMaxProducts];     // of what was gathered so far, or 0: not yet
    long long weights[kMaxModuli];  // CRT weights times 2^64
    double unit;                    // product of the moduli times 2^-64
    int num_products, rows, columns, depth;
    unsigned char left[kMaxProducts], right[kMaxProducts], modulus[kMaxProducts];
};

// Byte of a 16-byte part of a row of a buffer.
__device__ __forceinline__ unsigned part_at(unsigned row, unsigned part) { return row * kStep + ((part ^ (row >> 2 & 1)) << 4); }

// One step of K from the buffers at `stage` into a warp's 32 x 32 sums.
__device__ __forceinline__ void multiply(int (&acc)[2][4][4], unsigned left, unsigned right) {
    unsigned a[2][4], b[2][4];
#pragma unroll
    for (int i = 0; i < 2; ++i) load_matrices(a[i], left + i * 16 * kStep);
#pragma unroll
    for (int j = 0; j < 2; ++j) load_matrices(b[j], right + j * 16 * kStep);
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma(acc[i][j], a[i], b[j >> 1][2 * (j & 1)], b[j >> 1][2 * (j & 1) + 1]);
}

extern "C" __global__ void __launch_bounds__(256, 1)
ozaki_founding(const signed char* __restrict__ left, const signed char* __restrict__ right, out_t* __restrict__ out, int wanted,
               const __grid_constant__ Founding f, const __grid_constant__ Scheme scheme) {
    __shared__ __align__(128) signed char buffers[2 * kStageBytes];
    const unsigned base = shared_address(buffers);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, down = f.rows / kRows;
    const int row0 = (int)(blockIdx.x % down) * kRows, column0 = (int)(blockIdx.x / down) * kColumns;
    const int warp_row = (warp & 3) * 32, warp_column = (warp >> 2) * 32;
    const unsigned left_at = part_at(warp_row + (lane & 15), lane >> 4);
    const unsigned right_at = kLeftBytes + part_at(warp_column + (lane & 7) + ((lane >> 4) << 3), lane >> 3 & 1);
    const int steps = f.depth / kStep;
    const unsigned line = threadIdx.x >> 1, part = threadIdx.x & 1;  // that this thread copies

    int load_product = 0, load_step = 0;
    auto load = [&](unsigned stage) {
        if (load_product < f.num_products) {
            const signed char* from = left + ((index_t)f.left[load_product] * f.rows + row0 + line) * f.depth + load_step * kStep + part * 16;
            copy_line(base + stage * kStageBytes + part_at(line, part), from);
            if (line < kColumns) {
                from = right + ((index_t)f.right[load_product] * f.columns + column0 + line) * f.depth + load_step * kStep + part * 16;
                copy_line(base + stage * kStageBytes + kLeftBytes + part_at(line, part), from);
            }
            if (++load_step == steps) load_step = 0, ++load_product;
        }
        commit_copies();
    };
    load(0);
    int acc[2][4][4] = {};
    long long wrapped[2][4][4] = {};
    double total[2][4][4] = {};
    unsigned stage = 0;
#pragma unroll 1
    for (int p = 0; p < f.num_products; ++p) {
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            wait_copies<0>();
            __syncthreads();  // the step has arrived for all, and all have left the buffer that is loaded next
            load(stage ^ 1);
            multiply(acc, base + stage * kStageBytes + left_at, base + stage * kStageBytes + right_at);
            stage ^= 1;
        }
        const Modulus& m = scheme.moduli[f.modulus[p]];
        const long long weight = f.weights[f.modulus[p]];
        const double scale = f.scale[p];
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const index_t at = (index_t)(row0 + warp_row + i * 16 + (e >> 1) * 8 + (lane >> 2)) * f.columns + column0 + warp_column +
                                       j * 8 + (lane & 3) * 2 + (e & 1);
                    const int residue = kCrt ? (signed char)sum_residue(acc[i][j][e], m) : 0;
                    if (QSIM_LAYER == 1 && p == wanted) out[at] = (out_t)acc[i][j][e];
                    if (QSIM_LAYER == 2 && p == wanted) out[at] = (out_t)residue;
                    if (kCrt) {
                        wrapped[i][j][e] += residue * weight;  // exact: modulo 2^64
                        acc[i][j][e] = 0;
                    }
                    if (scale != 0) {
                        // rounds once: a wrapped sum differs from its integer's by less than a half
                        const double integer = kCrt ? rint(__dmul_rn(__ll2double_rn(wrapped[i][j][e]), f.unit)) : (double)acc[i][j][e];
                        if (QSIM_LAYER == 3 && p == wanted) out[at] = (out_t)integer;
                        total[i][j][e] = __fma_rn(integer, scale, total[i][j][e]);  // exact product: a power of two
                        wrapped[i][j][e] = 0, acc[i][j][e] = 0;
                    }
                    if (QSIM_LAYER == 0 && p == f.num_products - 1) out[at] = (out_t)total[i][j][e];
                }
    }
}

// The first kernel there was: raw sums of one pair of planes.
extern "C" __global__ void __launch_bounds__(256)
founding_naive(const signed char* __restrict__ left, const signed char* __restrict__ right, int* __restrict__ out, int columns, int depth,
               index_t num_entries) {
    for (index_t e = (index_t)blockIdx.x * blockDim.x + threadIdx.x; e < num_entries; e += (index_t)gridDim.x * blockDim.x) {
        const signed char *a = left + e / columns * depth, *b = right + e % columns * depth;
        int sum = 0;
        for (int k = 0; k < depth; ++k) sum += a[k] * b[k];
        out[e] = sum;
    }
}
