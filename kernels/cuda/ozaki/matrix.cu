// ozaki/matrix.cu -- from a matrix to the INT8 operand of the product.
// Arrays     matrix double2[size][size] row-major; operand int8 [plane][size / 128][size][128], as ozaki.cuh says
// Launch     one warp per row and 128 entries of K, 256 threads a block
// Work       once per matrix
// Exactness  entries are rounded once, to integers; residues are exact
#include "ozaki/ozaki.cuh"

extern "C" __global__ void __launch_bounds__(256)
ozaki_matrix(const double2* __restrict__ matrix, signed char* __restrict__ operand, int size, const __grid_constant__ Scheme scheme) {
    const int lane = threadIdx.x & 31;
    const index_t number = (index_t)blockIdx.x * 8 + (threadIdx.x >> 5);
    const int blocks = size / kDepth, block = (int)(number % blocks);
    const index_t row = number / blocks;
    const Power power(scheme.matrix_bits - scheme.matrix_exponent);
    __shared__ uint4 slots[8][kDepth];
    __shared__ int lane_words[kLaneWords];
    fill_lane_words(lane_words, scheme);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const double2 u = matrix[row * size + block * kDepth + 32 * i + lane];
        slots[threadIdx.x >> 5][32 * i + lane] = integers(power(u.x), power(u.y));
    }
    __syncthreads();
    const unsigned plane_bytes = (unsigned)size * size;  // below 2^32 with all 34 planes of 2^13 rows
    write_residues(slots[threadIdx.x >> 5], lane_words, operand, (block * (unsigned)size + (unsigned)row) * kDepth, (int)row, plane_bytes, scheme);
}
