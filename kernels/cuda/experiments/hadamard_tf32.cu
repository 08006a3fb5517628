// experiments/hadamard_tf32.cu -- H on up to 7 qubits by one product with a matrix of signs, by TF32 tensor cores (complex64), in place.
// Arrays     state float2[2^n] in/out; places uint64: (offset in the state, float2 in the tile) of 256 threads, then of kIterations
//            iterations, as cuda_hadamard.py makes them
// Launch     256 threads a tile of 128 rows x kColumns columns, any grid (grid-stride over tiles); kSharedBytes of dynamic shared memory
// Work       16 B an amplitude: bound by memory; 512 TF32 flop an amplitude
// Layout     a tile lies as 128 rows of 2 kColumns floats: gather and scatter are the transposes; a warp has 16 rows of the result. The
//            matrix is made in registers: an entry's sign is the parity of row & column
// Exactness  amplitudes are rounded to TF32's 11 bits, sums are FP32: the comparison in an experiment, no engine uses it
// Source     PTX ISA, mma.sync.m16n8k8 .tf32 fragment layout
#include "common/common.cuh"
#include "common/ptx.cuh"

constexpr int kRows = 128, kColumns = 32, kFloats = 2 * kColumns, kThreads = 256;
constexpr int kStride = kFloats + 8;  // 4 rows of a fragment lie in distinct banks
constexpr int kIterations = kRows * kColumns / kThreads;

struct HadamardTiles {
    index_t num_tiles;
    int mask;     // rows' bits that are transformed
    float scale;  // 2^(-their number / 2)
    Runs runs;    // every qubit that a tile enumerates
};

// The bits of an entry of the matrix: of H on the rows' bits in `mask`, of the identity on the others.
__device__ __forceinline__ unsigned entry_of(int row, int column, int mask) {
    const unsigned sign = 0x3F800000u | (unsigned)(__popc(row & column & mask) & 1) << 31;
    return ((row ^ column) & ~mask) == 0 ? sign : 0;
}

extern "C" __global__ void __launch_bounds__(kThreads, 2)
hadamard_tf32(float2* __restrict__ state, const index_t* __restrict__ places, const __grid_constant__ HadamardTiles tiles) {
    extern __shared__ __align__(16) float tile[];  // [row][column]
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = lane >> 2, member = lane & 3;
    const index_t* iteration_place = places + 2 * kThreads;
    for (index_t number = blockIdx.x; number < tiles.num_tiles; number += gridDim.x) {
        float2* at = state + spread(number, tiles.runs) + __ldg(places + 2 * threadIdx.x);
        float* mine = tile + __ldg(places + 2 * threadIdx.x + 1);
#pragma unroll
        for (int i = 0; i < kIterations; ++i) copy_async(mine + __ldg(iteration_place + 2 * i + 1), at + __ldg(iteration_place + 2 * i));
        wait_async();
        __syncthreads();
        float sums[kFloats / 8][4] = {};
        const int row = warp * 16 + group;
#pragma unroll 4
        for (int k = 0; k < kRows; k += 8) {
            const unsigned a[4] = {entry_of(row, k + member, tiles.mask), entry_of(row + 8, k + member, tiles.mask),
                                   entry_of(row, k + member + 4, tiles.mask), entry_of(row + 8, k + member + 4, tiles.mask)};
#pragma unroll
            for (int j = 0; j < kFloats / 8; ++j)
                mma_tf32(sums[j], a, to_tf32(tile[(k + member) * kStride + 8 * j + group]), to_tf32(tile[(k + member + 4) * kStride + 8 * j + group]));
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < kFloats / 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) tile[(row + 8 * (e >> 1)) * kStride + 8 * j + 2 * member + (e & 1)] = sums[j][e] * tiles.scale;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kIterations; ++i)
            at[__ldg(iteration_place + 2 * i)] = *reinterpret_cast<const float2*>(mine + __ldg(iteration_place + 2 * i + 1));
        __syncthreads();  // the next tile overwrites what other threads may still read
    }
}
