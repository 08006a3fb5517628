// ozaki/finish.cu -- reconstruct.cu and commit.cu in one, for columns that a block holds whole: residues of a product
// become entries in shared memory, are checked there, and go back into the state; no entry is written to memory before.
// Arrays     residues int8 as product.cu writes them with QSIM_WHOLE = kColumns; weights double[K]; state, places, row_offset,
//            column_offset, records, report as in commit.cu, places for tiles of kColumns columns
// Launch     one block of kThreads per kColumns columns; dynamic shared memory for kColumns * kStride double2
// Work       2 B a modulus read and 16 B written an amplitude; 4 FP64 and 6 integer operations an amplitude and modulus: bound by memory
// Exactness  as reconstruct.cu; rounds to the state's precision, and where an amplitude is denormal
#include "ozaki/crt.cuh"

constexpr int kColumns = QSIM_WHOLE, kWords = kColumns / 4;  // a row's words, of 4 columns each
constexpr int kBlocks = QSIM_DEPTH, kSize = kBlocks * kDepth;  // K / kDepth, K
constexpr int kThreads = kSize * kColumns > 4096 ? 512 : 256;
constexpr int kStepRows = kThreads / kWords, kSteps = kSize / kStepRows;
constexpr int kStride = kSize + 8 / kWords;  // of a column: the words of the rows that a quarter of a warp stores lie in distinct banks
constexpr int kWarps = kThreads / 32;
// In 80 registers three blocks of 64 KiB fill a multiprocessor; in 128 two, or one of 512 threads. kAtOnce: moduli whose words are on their way at a time; more would spill.
constexpr int kResident = kThreads == 512 ? 1 : kModuli <= 9 || kSize * kColumns <= 2048 ? 3 : 2;
constexpr int kAtOnce = kResident == 3 ? 9 : 17;
static_assert(kColumns == 8 || kColumns == 16, "a block's columns are a quarter of a group of 64 or half of one");
static_assert(kSteps >= 1 && kSize % kStepRows == 0, "a step of all threads is part of a column");

extern "C" __global__ void __launch_bounds__(kThreads, kResident)
ozaki_finish(const signed char* __restrict__ residues, const double* __restrict__ weights, amp_t* __restrict__ state,
             const index_t* __restrict__ places, const index_t* __restrict__ column_offset, const index_t* __restrict__ row_offset,
             const ColumnRecord* __restrict__ records, index_t* __restrict__ report, const __grid_constant__ Columns columns,
             const __grid_constant__ Scheme scheme) {
    extern __shared__ __align__(16) double2 tile[];  // [column][row]
    __shared__ int exponents[kColumns];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const unsigned first = blockIdx.x * kColumns, across = columns.row_stride / kTileColumns;
    const int group = (first & 255) >> 6, quarter = first >> 4 & 3, half = kColumns == 8 ? first >> 3 & 1 : 0;
    const int word = lane % kWords, slot = lane / kWords & 7;
    const int row8 = warp * (4 / kWords) + lane / (8 * kWords);  // of the thread's first row, in eights
    const int row_in_8 = (slot ^ 2 * quarter) & 7;
#pragma unroll 1
    for (int step = 0; step < kSteps; ++step) {
        const int row = 8 * (row8 + step * (kStepRows / 8)) + row_in_8;
        // below 2^32: a chunk's workspace
        const unsigned from = ((row >> 6) * across + first / kTileColumns) * kOutBlock + out_place(row & 63, group, quarter) + 8 * half + 4 * word;
        Sums sums(scheme);
#pragma unroll
        for (int first_modulus = 0; first_modulus < kModuli; first_modulus += kAtOnce) {
            unsigned words[2 * kAtOnce];
#pragma unroll
            for (int p = 0; p < 2 * kAtOnce; ++p) {
                const int plane = 2 * first_modulus + p;
                if (plane < 2 * kModuli) words[p] = __ldg(reinterpret_cast<const unsigned*>(residues + (from + plane * columns.plane_bytes)));
            }
#pragma unroll
            for (int t = 0; t < kAtOnce; ++t)
                if (first_modulus + t < kModuli) sums.add(words[2 * t], words[2 * t + 1], scheme.moduli[first_modulus + t]);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const double re = scaled_fraction(sums.re_high[i], sums.re_low[i], scheme);
            const double im = scaled_fraction(sums.im_high[i], sums.im_low[i], scheme);
            tile[(word + kWords * i) * kStride + row] = make_double2(re, im);
        }
    }
    __syncthreads();
    for (int c = warp; c < kColumns; c += kWarps) {  // sums only here: in the steps before they would take registers
        double re = 0, im = 0;
#pragma unroll 4
        for (int r = lane; r < kSize; r += 32) {
            const double weight = __ldg(weights + r);
            const double2 y = tile[c * kStride + r];
            re += weight * y.x;
            im += weight * y.y;
        }
#pragma unroll
        for (int mask = 1; mask < 32; mask *= 2) re += __shfl_xor_sync(~0u, re, mask), im += __shfl_xor_sync(~0u, im, mask);
        if (lane == 0) exponents[c] = judge(records[first + c], re, im, columns.first + first + c, report, scheme);
    }
    __syncthreads();
    // places are those of 256 threads: the upper half of 512 takes every other block of rows
    const unsigned member = threadIdx.x & 255;
    amp_t* to = state + (columns.base | __ldg(column_offset + first)) + __ldg(places + 2 * member);
    const int thread_place = (int)__ldg(places + 2 * member + 1);
#pragma unroll 1
    for (int block = threadIdx.x >> 8; block < kBlocks; block += kThreads / 256) {
        const index_t offset = __ldg(row_offset + block * kDepth);
#pragma unroll
        for (int i = 0; i < kColumns * kDepth / 256; ++i) {
            const int place = thread_place | (int)__ldg(places + 512 + 2 * i + 1);
            const int exponent = exponents[place >> 7];
            if (exponent == kUnusable) continue;
            const double2 y = tile[(place >> 7) * kStride + block * kDepth + (place & 127)];
            const Power power(exponent);
            amp_t amp;
            amp.x = (real_t)power(y.x);
            amp.y = (real_t)power(y.y);
            to[offset | __ldg(places + 512 + 2 * i)] = amp;
        }
    }
}
