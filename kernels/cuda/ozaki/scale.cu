// ozaki/scale.cu -- per column of a state, at any target qubits: the scale of its amplitudes, and what its check must find.
// Arrays     state amp_t[2^n]; row_offset uint64[K], column_offset uint64[num_columns]: places in the state, from the launch's base on;
//            check_row double2[K]; records ColumnRecord[num_columns], zero at the start
// Launch     one block of 256 threads per 32 columns and 128 rows, columns fastest; ozaki_clear: any grid of any blocks
// Work       16 B read and 10 flop an amplitude: bound by memory
// Exactness  sums in FP64, in an order that differs from run to run: a scale has room for it
#include "ozaki/ozaki.cuh"

// Norms and expected checks of 32 columns, 128 rows a block; the last block of the columns makes their scales.
extern "C" __global__ void __launch_bounds__(256)
ozaki_scale(const amp_t* __restrict__ state, const index_t* __restrict__ column_offset, const index_t* __restrict__ row_offset,
            const double2* __restrict__ check_row, ColumnRecord* records, const __grid_constant__ Columns columns) {
    __shared__ double partial[4][8][32];
    __shared__ bool last;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const unsigned groups = (unsigned)((columns.num_columns + 31) / 32), group = blockIdx.x % groups;
    const index_t column = (index_t)group * 32 + lane;
    const int first_row = (int)(blockIdx.x / groups) * kDepth + warp * 16;
    double square = 0, rescued = 0, expected_re = 0, expected_im = 0;
    if (column < columns.num_columns) {
        const amp_t* from = state + (columns.base | __ldg(column_offset + column));
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            const amp_t amp = from[__ldg(row_offset + first_row + i)];
            const double2 p = __ldg(check_row + first_row + i);
            const double re = amp.x, im = amp.y, up_re = re * 0x1p600, up_im = im * 0x1p600;
            square += re * re + im * im;
            rescued += up_re * up_re + up_im * up_im;
            expected_re += p.x * re - p.y * im;
            expected_im += p.x * im + p.y * re;
        }
    }
    partial[0][warp][lane] = square;
    partial[1][warp][lane] = rescued;
    partial[2][warp][lane] = expected_re;
    partial[3][warp][lane] = expected_im;
    __syncthreads();
    if (warp < 4 && column < columns.num_columns) {
        double sum = 0;
        for (int w = 0; w < 8; ++w) sum += partial[warp][w][lane];
        atomicAdd(&records[column].square + warp, sum);
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&records[group * 32].arrived, 1u) == columns.depth_blocks - 1;
    __syncthreads();
    if (last && warp == 0 && column < columns.num_columns)
        records[column].exponent = scale_exponent(__ldcg(&records[column].square), __ldcg(&records[column].rescued));
}

// Zeros before a launch: a library's fill would not share a multiprocessor with blocks that want its cache as shared memory.
extern "C" __global__ void __launch_bounds__(256) ozaki_clear(ulonglong2* records, index_t num_parts) {
    for (index_t i = (index_t)blockIdx.x * blockDim.x + threadIdx.x; i < num_parts; i += (index_t)gridDim.x * blockDim.x) records[i] = {0, 0};
}
