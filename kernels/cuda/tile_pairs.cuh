// tile_pairs.cuh -- 4x4 matrices on the two qubits that number neighbouring threads, by FP64 tensor cores; for tile_straight.cuh.
// Arrays     tables: for each thread of a warp two doubles at `at`, its part of the matrix as a real 8x8 one (cuda_pairs.py)
// Bound      1024 products an instruction for 64 amplitudes, 16 each: at twice the rate of FMA, the time of 8 (sm_90)
// Source     PTX ISA, mma.sync.m16n8k8 .f64 fragment layout
#pragma once
#include "tile_gates.cuh"

// c = a times b: row g of a is a warp's threads 4 g to 4 g + 3, columns t and t + 4 of it are in thread t of them.
__device__ __forceinline__ void pair_mma(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

// The rows of one product are 8 groups of threads in 2 registers; it leaves real and imaginary parts where they were.
__device__ __forceinline__ void pair_block(Amps& a, const index_t* tables, unsigned at) {
    const double2 part = __ldg(reinterpret_cast<const double2*>(tables + at) + (threadIdx.x & 31));
    const double b[2] = {part.x, part.y};
#pragma unroll
    for (int r = 0; r < kAmps; r += 2) {
        const double rows[4] = {a[r].x, a[r + 1].x, a[r].y, a[r + 1].y};
        double c[4] = {};
        pair_mma(c, rows, b);
        a[r] = {c[0], c[1]};
        a[r + 1] = {c[2], c[3]};
    }
}
