// dense_block.cu -- one 2^k x 2^k unitary on any k qubits, in place, by FP64 tensor cores (complex128).
// Arrays     state double2[2^n] in/out; matrix double2 in fragment order (cuda_dense.py); places uint64: offsets of threads, of
//            iterations, of rows, of columns
// Launch     256 threads a block, any grid (grid-stride over tiles); kBuffers tiles of dynamic shared memory
// Work       32 B and 8 * 2^k flop an amplitude: bound by memory up to k = 5, by the tensor cores from k = 6
// Layout     a tile is 2^k rows x kColumns amplitudes; read as reals it has 2 kColumns columns (re, im), so that P = Re(U) X and
//            Q = Im(U) X leave both parts of an amplitude in one thread: y = (P_re - Q_im, P_im + Q_re)
// Exactness  FP64 products summed in FP64, in the tensor core's order
// Source     PTX ISA, mma.sync.m16n8k16 .f64 fragment layout
#include "common.cuh"

static_assert(QSIM_K >= 4 && QSIM_K <= 9, "a tile of 2^k rows must fit shared memory");
constexpr int kRows = 1 << QSIM_K;
constexpr int kColumns = QSIM_K == 4 ? 128 : QSIM_K <= 6 ? 64 : QSIM_K <= 8 ? 32 : 16;
constexpr int kRowStride = 2 * kColumns + 4;  // doubles; 32 bytes of padding put the 4 rows of a fragment into distinct banks
constexpr int kThreads = 256;
constexpr int kWarpColumns = 16;                      // amplitudes, i.e. 4 fragments of 8 reals
constexpr int kWarpsAcross = kColumns / kWarpColumns;
constexpr int kWarpsDown = kThreads / 32 / kWarpsAcross;
constexpr int kBlocks = kRows / 16;                   // 16-row blocks of the matrix
constexpr int kIterations = kRows * kColumns / kThreads;
constexpr int kBuffers = QSIM_K <= 5 ? 2 : 1;         // a second tile comes in behind the arithmetic where two blocks leave room for it
constexpr bool kAhead = QSIM_K >= 8;                  // one block has registers for the matrix's next fragments, which come from L2

struct DenseTile {
    index_t num_tiles;
    index_t fixed;  // control qubits at their state
    Runs runs;      // rows, columns and controls: every qubit that a tile does not enumerate
};

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

// p += Re(U) X, q += Im(U) X for 16 rows of the matrix and 32 real columns; x points at the lane's first entry.
__device__ __forceinline__ void multiply(double (&p)[4][4], double (&q)[4][4], const Fragment& f, const double* x) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        double b[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) b[i] = x[4 * i * kRowStride + 8 * j];
        mma(p[j], f.re, b);
        mma(q[j], f.im, b);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads, QSIM_K >= 8 ? 1 : 2)
dense_block(double2* __restrict__ state, const double2* __restrict__ matrix, const index_t* __restrict__ places,
            const __grid_constant__ DenseTile tiles) {
    extern __shared__ __align__(16) double shared[];
    const index_t* thread_place = places + 2 * threadIdx.x;                    // (offset in the state, doubles in shared memory)
    const index_t* iteration_place = places + 2 * kThreads;                    // the same, per iteration
    const index_t* row_offset = iteration_place + 2 * kIterations;             // per row of the matrix
    const index_t* column_offset = row_offset + kRows;                         // per column of the tile
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = lane >> 2, member = lane & 3;
    const int column0 = (warp % kWarpsAcross) * kWarpColumns;

    const auto fetch = [&](index_t tile, double* buffer) {
        if (tile < tiles.num_tiles) {
            const double2* from = state + (spread(tile, tiles.runs) | tiles.fixed) + __ldg(thread_place);
            double* to = buffer + __ldg(thread_place + 1);
#pragma unroll 8
            for (int i = 0; i < kIterations; ++i) copy_async(to + __ldg(iteration_place + 2 * i + 1), from + __ldg(iteration_place + 2 * i));
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    int turn = 0;
    fetch(blockIdx.x, shared);
    for (index_t tile = blockIdx.x; tile < tiles.num_tiles; tile += gridDim.x, turn ^= kBuffers - 1) {
        const index_t base = spread(tile, tiles.runs) | tiles.fixed;
        const double* own = shared + turn * kRows * kRowStride;
        if constexpr (kBuffers == 2) fetch(tile + gridDim.x, shared + (turn ^ 1) * kRows * kRowStride);
        asm volatile("cp.async.wait_group %0;" ::"n"(kBuffers - 1) : "memory");
        __syncthreads();

        for (int m = warp / kWarpsAcross; m < kBlocks; m += kWarpsDown) {
            double p[4][4] = {}, q[4][4] = {};
            const double2* fragments = matrix + m * kBlocks * 8 * 32 + lane;
            const double* x = own + member * kRowStride + 2 * column0 + group;
            Fragment now;
            load(now, fragments);
#pragma unroll 1
            for (int k = 0; k < kBlocks; ++k) {
                Fragment next = now;
                const bool more = k + 1 < kBlocks;
                if (kAhead && more) load(next, fragments + (k + 1) * 8 * 32);
                multiply(p, q, now, x + k * 16 * kRowStride);
                if (!kAhead && more) load(next, fragments + (k + 1) * 8 * 32);
                now = next;
            }
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                double2* row = state + base + __ldg(row_offset + m * 16 + half * 8 + group);
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const double2 y = {p[j][2 * half] - q[j][2 * half + 1], p[j][2 * half + 1] + q[j][2 * half]};
                    row[__ldg(column_offset + column0 + 4 * j + member)] = y;
                }
            }
        }
        __syncthreads();  // a tile to come overwrites what other warps may still read
        if constexpr (kBuffers == 1) fetch(tile + gridDim.x, shared);
    }
}
