// ozaki/commit.cu -- columns whose check holds go back into the state, unscaled; the others keep their input and are reported.
// Arrays     state, row_offset, column_offset, records as in scale.cu, places as in residues.cu; result double2
//            [K][row_stride]; report uint64: failed columns, the largest squared residual of the others (bits of a double), then the
//            failed columns' numbers
// Launch     as ozaki_residues
// Work       32 B an amplitude: bound by memory
// Exactness  rounds to the state's precision, and where an amplitude is denormal
#include "ozaki/ozaki.cuh"

extern "C" __global__ void __launch_bounds__(256)
ozaki_commit(amp_t* __restrict__ state, const index_t* __restrict__ places, const index_t* __restrict__ column_offset,
             const index_t* __restrict__ row_offset, const ColumnRecord* __restrict__ records, const double2* __restrict__ result,
             index_t* __restrict__ report, const __grid_constant__ Columns columns, const __grid_constant__ Scheme scheme) {
    __shared__ int exponents[kGatherColumns];
    const unsigned groups = (unsigned)(columns.num_columns / kGatherColumns);
    const index_t first = (index_t)(blockIdx.x % groups) * kGatherColumns;
    const int block = (int)(blockIdx.x / groups);
    const index_t base = columns.base | __ldg(column_offset + first) | __ldg(row_offset + block * kDepth);
    amp_t* to = state + base + __ldg(places + 2 * threadIdx.x);
    const int thread_place = (int)__ldg(places + 2 * threadIdx.x + 1);
    const double2* from = result + (index_t)block * kDepth * columns.row_stride + first;
    double2 y[kGatherSteps];
#pragma unroll
    for (int i = 0; i < kGatherSteps; ++i) {
        const int place = thread_place | (int)__ldg(places + 512 + 2 * i + 1);
        y[i] = __ldg(from + (index_t)(place & 127) * columns.row_stride + (place >> 7));
    }
    if (threadIdx.x < kGatherColumns) {
        const ColumnRecord& record = records[first + threadIdx.x];
        index_t* told = block == 0 ? report : nullptr;  // once a column
        exponents[threadIdx.x] = judge(record, record.found_re, record.found_im, columns.first + first + threadIdx.x, told, scheme);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kGatherSteps; ++i) {
        const int place = thread_place | (int)__ldg(places + 512 + 2 * i + 1);
        const int exponent = exponents[place >> 7];
        if (exponent == kUnusable) continue;
        const Power power(exponent);
        amp_t amp;
        amp.x = (real_t)power(y[i].x);
        amp.y = (real_t)power(y[i].y);
        to[__ldg(places + 512 + 2 * i)] = amp;
    }
}
