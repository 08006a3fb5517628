// dense/gather.cu -- copies part of a state into a 2^k x columns matrix (rows = target qubits) and back, for a library product.
// Arrays     state amp_t[2^n]; block amp_t[2^k, num_columns] row-major; places uint64 pairs: (offset, slot) of threads and of
//            iterations in the state's order, the same in the block's, then (offset in the state, in the block) of tiles (engines/cuda/dense/tables.py)
// Launch     256 threads a block, any grid (grid-stride over tiles)
// Work       32 B a complex128 amplitude each way: one pass, bound by memory
// Layout     a tile holds whole 128-byte lines of both sides; in shared memory it is swizzled so that both read it without conflicts
// Exactness  copies
#include "common/common.cuh"

constexpr int kThreads = 256, kIterations = 4;

struct Block {
    index_t num_tiles;
    index_t fixed;       // bits of the qubits that this part holds fixed: controls and the top columns
    unsigned tile_size;  // at most kThreads * kIterations
};

// One side's places of the elements that a thread moves.
struct Side {
    const index_t* places;
    __device__ __forceinline__ index_t offset(int i) const { return __ldg(places + 2 * threadIdx.x) + __ldg(places + 2 * (kThreads + i)); }
    __device__ __forceinline__ unsigned slot(int i) const {
        return (unsigned)(__ldg(places + 2 * threadIdx.x + 1) ^ __ldg(places + 2 * (kThreads + i) + 1));
    }
};

__device__ __forceinline__ void move_tiles(amp_t* to, const amp_t* from, Side writes, Side reads, const index_t* tiles, bool gathers,
                                           const Block& b) {
    __shared__ __align__(128) amp_t buffer[kThreads * kIterations];
    for (index_t tile = blockIdx.x; tile < b.num_tiles; tile += gridDim.x) {
        const index_t in_state = __ldg(tiles + 2 * tile) | b.fixed, in_block = __ldg(tiles + 2 * tile + 1);
        const amp_t* source = from + (gathers ? in_state : in_block);
        amp_t* target = to + (gathers ? in_block : in_state);
        amp_t held[kIterations];
#pragma unroll
        for (int i = 0; i < kIterations; ++i)
            if (i * kThreads + threadIdx.x < b.tile_size) held[i] = load_amp(source + reads.offset(i));
#pragma unroll
        for (int i = 0; i < kIterations; ++i)
            if (i * kThreads + threadIdx.x < b.tile_size) buffer[reads.slot(i)] = held[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kIterations; ++i)
            if (i * kThreads + threadIdx.x < b.tile_size) target[writes.offset(i)] = buffer[writes.slot(i)];
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
block_gather(const amp_t* __restrict__ state, amp_t* __restrict__ block, const index_t* __restrict__ places,
             const __grid_constant__ Block b) {
    const index_t* in_block = places + 2 * (kThreads + kIterations);
    move_tiles(block, state, {in_block}, {places}, in_block + 2 * (kThreads + kIterations), true, b);
}

extern "C" __global__ void __launch_bounds__(kThreads)
block_scatter(amp_t* __restrict__ state, const amp_t* __restrict__ block, const index_t* __restrict__ places,
              const __grid_constant__ Block b) {
    const index_t* in_block = places + 2 * (kThreads + kIterations);
    move_tiles(state, block, {places}, {in_block}, in_block + 2 * (kThreads + kIterations), false, b);
}
