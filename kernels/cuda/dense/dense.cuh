// dense/dense.cuh -- products of matrix fragments with amplitudes in shared memory, by FP64 tensor cores; for all dense kernels.
// Macros     QSIM_K qubits of the matrix; QSIM_PRODUCTS real products of a complex one, 3 or 4
// Layout     groups of 2^k rows x 8 columns; their lowest qubits fill 128-byte rows of shared memory, swizzled so that a quarter
//            warp (complex64: half a warp) reads from distinct banks, whichever qubits are targets
// Exactness  FP64 products summed in FP64, in the tensor core's order. Three products: P = Ar Xr, Q = Ai Xi, S = (Ar + Ai)(Xr + Xi),
//            y = (P - Q, S - (P + Q)). Rows of a unitary have norm 1, so each part is off by at most (2^k + 1) 2^-53 (real) and
//            3 (2^k + 4) 2^-53 (imaginary) of its column's norm; four products: (2^k + 1) 2^-53 both. With Ai = 0 and Xi = 0 the
//            sums S and P are the same and y is real exactly. complex64 adds the rounding of each result, 2^-24
// Source     PTX ISA, mma.sync.m16n8k16 .f64 fragment layout; Higham, Accuracy and Stability of Numerical Algorithms, 23.2.4
#pragma once
#include "common/common.cuh"
#include "common/ptx.cuh"

constexpr int kRows = 1 << QSIM_K;
constexpr int kBlocks = kRows / 16;                    // of 16 rows or 16 columns of the matrix
constexpr int kGroupSlots = kRows * 8;                 // amplitudes of a group
constexpr int kSums = QSIM_PRODUCTS == 3 ? 3 : 2;
constexpr int kFragment = 8 * 32;                      // double2 of 16 x 16 entries of the matrix
constexpr index_t kNone = ~0ull;                       // in place of a base: there is no such tile or group

__device__ __forceinline__ void mma(double (&c)[4], const double2 (&a)[4], const double (&b)[4]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5,%6,%7,%8,%9,%10,%11},{%12,%13,%14,%15},{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0].x), "d"(a[0].y), "d"(a[1].x), "d"(a[1].y), "d"(a[2].x), "d"(a[2].y), "d"(a[3].x), "d"(a[3].y), "d"(b[0]), "d"(b[1]),
          "d"(b[2]), "d"(b[3]));
}

// Parts of 16 x 16 entries of the matrix as one lane holds them.
struct Fragment {
    double2 re[4], im[4];
};
__device__ __forceinline__ void load(Fragment& f, const double2* from) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        f.re[i] = __ldg(from + i * 32);
        f.im[i] = __ldg(from + (4 + i) * 32);
    }
}

// 16 rows of a group as one lane holds them, row 4 i at i: real parts, imaginary parts, and what the third or fourth product takes.
struct Column {
    double re[4], im[4], other[4];
};
__device__ __forceinline__ void load(Column& x, const amp_t* first, const amp_t* second) {
    const amp_t* const rows[4] = {first, second, first + 64, second + 64};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const amp_t amp = *rows[i];
        x.re[i] = amp.x;
        x.im[i] = amp.y;
        x.other[i] = kSums == 3 ? x.re[i] + x.im[i] : -x.im[i];
    }
}

using Sums = double[kSums][4];

__device__ __forceinline__ amp_t amplitude(const Sums& sums, int i) {
    if constexpr (kSums == 3) return {(real_t)(sums[0][i] - sums[1][i]), (real_t)(sums[2][i] - (sums[0][i] + sums[1][i]))};
    return {(real_t)sums[0][i], (real_t)sums[1][i]};
}

// Lanes that differ in bit 0 trade rows g + 8 of the lower for rows g of the upper: then each has one row, in two columns.
__device__ __forceinline__ void trade(amp_t& kept, amp_t& other, bool upper) {
    const amp_t sent = upper ? kept : other;
    kept = upper ? other : kept;
    other = {__shfl_xor_sync(0xffffffffu, sent.x, 1), __shfl_xor_sync(0xffffffffu, sent.y, 1)};
}

// Where a lane stores: its first amplitude, the one that it holds or gets beside it, and the same in the column beside.
struct Store {
    index_t first, other, column;
    bool exchange;  // whether lanes exchange rows for columns before they store
};
__device__ __forceinline__ void store(const Sums& sums, amp_t* base, const Store& to, bool exists) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        amp_t kept = amplitude(sums, r), other = amplitude(sums, 2 + r);
        if (to.exchange) trade(kept, other, threadIdx.x & 1);
        if (!exists) continue;
        base[r * to.column + to.first] = kept;
        base[r * to.column + to.other] = other;
    }
}
