// tile/pairs.cuh -- 4x4 matrices on two qubits that number neighbouring threads, chosen by other qubits, by tensor cores.
// Arrays     tables: for each matrix and thread of a warp 16 bytes from `at` on, its part of a real 8x8 one: two doubles, or of complex64
//            two floats of 11 bits and what they lack (engines/cuda/tile/pairs.py)
// Bound      1024 products an instruction for 64 amplitudes, 16 each: complex128 in the time of 8 FMA (sm_90); complex64 by three such of TF32,
//            and 12 instructions that split two amplitudes
// Exactness  complex64: operands of 22 bits and a sign, sums of FP32; what both halves lack is left out, 2^-23 of a product
// Source     PTX ISA, mma.sync.m16n8k8 .f64 and .tf32, which reads the upper 19 bits of a float, fragment layouts
#pragma once
#include "common/volatile_access.cuh"
#include "tile/places.cuh"

// c = a times b: row g of a is a warp's threads 4 g to 4 g + 3, columns t and t + 4 of it are in thread t of them.
__device__ __forceinline__ void pair_mma(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

__device__ __forceinline__ void pair_mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// One product for two amplitudes of each thread: they are rows g and g + 8, real and imaginary parts columns t and t + 4, and again so after it.
__device__ __forceinline__ void pair_product(double2& first, double2& second, const double2& part) {
    const double rows[4] = {first.x, second.x, first.y, second.y}, matrix[2] = {part.x, part.y};
    double c[4] = {};
    pair_mma(c, rows, matrix);
    first = {c[0], c[1]};
    second = {c[2], c[3]};
}
__device__ __forceinline__ void pair_product(float2& first, float2& second, const double2& part) {
    const float rows[4] = {first.x, second.x, first.y, second.y};
    unsigned high[4], low[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        high[i] = (__float_as_int(rows[i]) + 0x1000u) & 0xFFFFE000u;
        low[i] = __float_as_int(rows[i] - __int_as_float(high[i]));  // exact
    }
    const unsigned matrix_high[2] = {(unsigned)__double2loint(part.x), (unsigned)__double2hiint(part.x)};
    const unsigned matrix_low[2] = {(unsigned)__double2loint(part.y), (unsigned)__double2hiint(part.y)};
    float c[4] = {};
    pair_mma(c, low, matrix_high);
    pair_mma(c, high, matrix_low);
    pair_mma(c, high, matrix_high);
    first = {c[0], c[1]};
    second = {c[2], c[3]};
}

// The register bits kSelecting choose the matrix of a product, and `choice`, what qubits outside the warp say; its two registers differ in
// another bit.
template <unsigned kSelecting>
__device__ __forceinline__ void pair_block(Amps& a, const index_t* tables, unsigned at, unsigned choice) {
    constexpr unsigned kRow = ~kSelecting & (kSelecting + 1);  // the lowest other bit
    constexpr int kMatrices = packed<kSelecting>(kAmps - 1) + 1;
    const double2* parts = reinterpret_cast<const double2*>(tables + at) + choice * (kMatrices * 32) + (threadIdx.x & 31);
#pragma unroll
    for (int matrix = 0; matrix < kMatrices; ++matrix) {
        const double2 part = kIsDouble ? __ldg(parts + matrix * 32) : load_volatile(parts + matrix * 32);  // of complex64 registers are short
#pragma unroll
        for (int r = 0; r < kAmps; ++r)
            if (!(r & kRow) && packed<kSelecting>(r) == matrix) pair_product(a[r], a[r + kRow], part);
    }
}
