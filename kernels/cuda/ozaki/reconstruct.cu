// ozaki/reconstruct.cu -- from residues of a product to its entries, by CRT, over the columns' scales; and the sums of their check.
// Arrays     residues int8 as product.cu writes them; weights double[K] of the check; result double2
//            [K][row_stride]; records as in scale.cu
// Launch     one block of 128 threads per 128 columns and 16 rows, columns fastest
// Work       2 B a modulus read and 16 B written an amplitude; 4 FP64 and 6 integer operations an amplitude and modulus: bound by them
// Exactness  the high words' sums are exact; one rounding when the fraction is scaled
#include "ozaki/crt.cuh"

extern "C" __global__ void __launch_bounds__(128, 4)
ozaki_reconstruct(const signed char* __restrict__ residues, const double* __restrict__ weights, double2* __restrict__ result,
                  ColumnRecord* __restrict__ records, const __grid_constant__ Columns columns, const __grid_constant__ Scheme scheme) {
    __shared__ double2 half_sums[2][128];
    __shared__ unsigned words[2][2 * kModuli][128];  // of this step and the next
    const int lane = threadIdx.x & 31, half = threadIdx.x >> 5 & 1, group = (blockIdx.x & 1) * 2 + (threadIdx.x >> 6);
    const unsigned across = columns.row_stride / kTileColumns, number = blockIdx.x >> 1, column_block = number % across, row_block = number / across;
    const index_t first = (index_t)column_block * kTileColumns + group * 64 + (lane & 15);  // column of the thread's first byte
    const int row = row_block * 16 + half * 8 + (lane >> 4);                             // row of its first word
    // below 2^32: a chunk's workspace; words of a step are 128 bytes, two rows, apart
    const unsigned start = ((row_block >> 2) * across + column_block) * kOutBlock + out_place(row & 63 & ~1, group, 0) + 4 * lane;
    constexpr int kSteps = 4;
    auto load = [&](int step) {  // the thread's own words: nobody else waits for them
#pragma unroll
        for (int p = 0; p < 2 * kModuli; ++p)
            copy_word(shared_address(&words[step & 1][p][threadIdx.x]), residues + (start + step * 128 + p * columns.plane_bytes));
        commit_copies();
    };
    load(0);
    double2 sum[4] = {};
#pragma unroll 1
    for (int step = 0; step < kSteps; ++step) {
        if (step + 1 < kSteps) load(step + 1);
        else commit_copies();
        wait_copies<1>();
        Sums sums(scheme);
#pragma unroll
        for (int t = 0; t < kModuli; ++t)
            sums.add(words[step & 1][2 * t][threadIdx.x], words[step & 1][2 * t + 1][threadIdx.x], scheme.moduli[t]);
        const double weight = __ldg(weights + row + 2 * step);
        double2* to = result + (index_t)(row + 2 * step) * columns.row_stride + first;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const double re = scaled_fraction(sums.re_high[i], sums.re_low[i], scheme);
            const double im = scaled_fraction(sums.im_high[i], sums.im_low[i], scheme);
            to[16 * i] = make_double2(re, im);
            sum[i].x += weight * re;
            sum[i].y += weight * im;
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        sum[i].x += __shfl_down_sync(~0u, sum[i].x, 16);
        sum[i].y += __shfl_down_sync(~0u, sum[i].y, 16);
        if (lane < 16) half_sums[half][(group & 1) * 64 + lane + 16 * i] = sum[i];
    }
    __syncthreads();
    const index_t column = (index_t)column_block * kTileColumns + (blockIdx.x & 1) * 128 + threadIdx.x;
    if (column < columns.num_columns) {
        atomicAdd(&records[column].found_re, half_sums[0][threadIdx.x].x + half_sums[1][threadIdx.x].x);
        atomicAdd(&records[column].found_im, half_sums[0][threadIdx.x].y + half_sums[1][threadIdx.x].y);
    }
}
