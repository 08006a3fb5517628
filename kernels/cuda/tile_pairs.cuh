// tile_pairs.cuh -- 4x4 matrices on the two qubits that number neighbouring threads, chosen by others, by FP64 tensor cores; for tile_straight.cuh.
// Arrays     tables: for each matrix and thread of a warp two doubles from `at` on, its part of a real 8x8 one (cuda_pairs.py)
// Bound      1024 products an instruction for 64 amplitudes, 16 each: at twice the rate of FMA, the time of 8 (sm_90)
// Source     PTX ISA, mma.sync.m16n8k8 .f64 fragment layout
#pragma once
#include "tile_places.cuh"

// c = a times b: row g of a is a warp's threads 4 g to 4 g + 3, columns t and t + 4 of it are in thread t of them.
__device__ __forceinline__ void pair_mma(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

// The rows of one product are 8 groups of threads in 2 registers, which differ in a bit that chooses no matrix; it leaves real and
// imaginary parts where they were. kSelecting are the register bits that choose, `choice` is what qubits outside the warp say.
template <unsigned kSelecting>
__device__ __forceinline__ void pair_block(Amps& a, const index_t* tables, unsigned at, unsigned choice) {
    constexpr unsigned kRow = ~kSelecting & (kSelecting + 1);  // the lowest other bit
    constexpr int kMatrices = packed<kSelecting>(kAmps - 1) + 1;
    const double2* parts = reinterpret_cast<const double2*>(tables + at) + choice * (kMatrices * 32) + (threadIdx.x & 31);
#pragma unroll
    for (int matrix = 0; matrix < kMatrices; ++matrix) {
        const double2 part = __ldg(parts + matrix * 32);
        const double b[2] = {part.x, part.y};
#pragma unroll
        for (int r = 0; r < kAmps; ++r) {
            if (r & kRow || packed<kSelecting>(r) != matrix) continue;
            const double rows[4] = {a[r].x, a[r + kRow].x, a[r].y, a[r + kRow].y};
            double c[4] = {};
            pair_mma(c, rows, b);
            a[r] = {c[0], c[1]};
            a[r + kRow] = {c[2], c[3]};
        }
    }
}
