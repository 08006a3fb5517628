// block_gather.cu -- copies part of a state into a 2^k x columns matrix (rows = target qubits) and back, for a library product.
// Arrays     state amp_t[2^n]; block amp_t[2^k, num_columns] row-major
// Launch     1-D grid, grid-stride over the block's elements in the order of the state: any grid is correct
// Work       32 B a complex128 amplitude each way: one pass, bound by memory
// Exactness  copies
#include "common.cuh"

struct Block {
    index_t num_elements;
    index_t fixed;       // bits of the qubits that this part holds fixed: controls and the top columns
    index_t num_columns;
    unsigned num_targets;
    unsigned char target[32];  // position of row bit b among the part's free qubits, ascending
    Runs fixed_runs;     // the fixed qubits
    Runs target_runs;    // the targets, as positions among the free qubits
};

// Removes the runs' bits: the inverse of spread().
__device__ __forceinline__ index_t squeeze(index_t value, const Runs& runs) {
    for (unsigned i = runs.count; i-- > 0;) {
        const index_t low = (1ull << runs.start[i]) - 1;
        value = (value & low) | ((value >> runs.length[i]) & ~low);
    }
    return value;
}

__device__ __forceinline__ index_t block_index(index_t e, const Block& b) {
    index_t row = 0;
    for (unsigned t = 0; t < b.num_targets; ++t) row |= ((e >> b.target[t]) & 1) << t;
    return row * b.num_columns + squeeze(e, b.target_runs);
}

extern "C" __global__ void __launch_bounds__(256)
block_gather(const amp_t* __restrict__ state, amp_t* __restrict__ block, const __grid_constant__ Block b) {
    for (index_t e = (index_t)blockIdx.x * blockDim.x + threadIdx.x; e < b.num_elements; e += (index_t)gridDim.x * blockDim.x)
        block[block_index(e, b)] = state[spread(e, b.fixed_runs) | b.fixed];
}

extern "C" __global__ void __launch_bounds__(256)
block_scatter(amp_t* __restrict__ state, const amp_t* __restrict__ block, const __grid_constant__ Block b) {
    for (index_t e = (index_t)blockIdx.x * blockDim.x + threadIdx.x; e < b.num_elements; e += (index_t)gridDim.x * blockDim.x)
        state[spread(e, b.fixed_runs) | b.fixed] = block[block_index(e, b)];
}
