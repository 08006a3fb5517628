// ozaki/encode.cu -- scale.cu and residues.cu in one, for columns short enough to be held whole: one read of the state.
// Arrays     as there; places for tiles of kWhole columns; records need not be zero at the start
// Launch     one block of kThreads per kWhole columns, kParts warps for each; dynamic shared memory for kWhole * (K + 1) double2
// Work       16 B read and 2 B a modulus written an amplitude; about 10 instructions an amplitude and modulus: bound by both
// Exactness  amplitudes are rounded once, to integers; residues are exact; the same bits on every run
#include "ozaki/ozaki.cuh"

constexpr int kWhole = 8;
constexpr int kBlocks = QSIM_DEPTH;  // K / kDepth
constexpr int kStride = kBlocks * kDepth + 1;
constexpr int kParts = kBlocks > 4 ? 2 : 1;  // of a column, its blocks in turn: one block a multiprocessor needs more warps
constexpr int kThreads = 256 * kParts;
#if __CUDA_ARCH__ == 1200
constexpr int kMostResident = 4;  // with 5 registers spill
#else
constexpr int kMostResident = 5;  // loads of some beside the arithmetic of others
#endif
constexpr int kResident = kBlocks > 4 ? 1 : kBlocks == 4 ? 3 : kMostResident;

__device__ __forceinline__ double warp_sum(double value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(~0u, value, offset);
    return value;
}

extern "C" __global__ void __launch_bounds__(kThreads, kResident)
ozaki_encode(const amp_t* __restrict__ state, const index_t* __restrict__ places, const index_t* __restrict__ column_offset,
             const index_t* __restrict__ row_offset, const double2* __restrict__ check_row, ColumnRecord* __restrict__ records,
             signed char* __restrict__ operand, const __grid_constant__ Columns columns, const __grid_constant__ Scheme scheme) {
    extern __shared__ __align__(16) double2 tile[];  // [column][row], one row of padding a column
    __shared__ double partial[kParts][kWhole][3];
    __shared__ int lane_words[kLaneWords];
    fill_lane_words(lane_words, scheme);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 7, part = threadIdx.x >> 8;
    const unsigned column = blockIdx.x * kWhole + warp, member = threadIdx.x & 255;
    const index_t base = columns.base | __ldg(column_offset + blockIdx.x * kWhole);
    const amp_t* from = state + base + __ldg(places + 2 * member);
    const int thread_place = (int)__ldg(places + 2 * member + 1);
#pragma unroll
    for (int block = part; block < kBlocks; block += kParts) {
        const index_t offset = __ldg(row_offset + block * kDepth);
#pragma unroll
        for (int i = 0; i < kWhole * kDepth / 256; ++i) {
            const int place = thread_place | (int)__ldg(places + 512 + 2 * i + 1);
            copy_async(tile + (place >> 7) * kStride + block * kDepth + (place & 127), from + (offset | __ldg(places + 512 + 2 * i)));
        }
    }
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    const double2* mine = tile + warp * kStride + lane;
    double square = 0, expected_re = 0, expected_im = 0;
#pragma unroll
    for (int j = 0; j < 4 * kBlocks / kParts; ++j) {
        const int i = (j >> 2) * 4 * kParts + part * 4 + (j & 3);
        const amp_t amp = *reinterpret_cast<const amp_t*>(mine + 32 * i);
        const double2 p = __ldg(check_row + 32 * i + lane);
        const double re = amp.x, im = amp.y;
        square += re * re + im * im;
        expected_re += p.x * re - p.y * im;
        expected_im += p.x * im + p.y * re;
    }
    square = warp_sum(square), expected_re = warp_sum(expected_re), expected_im = warp_sum(expected_im);
    if (kParts > 1) {
        if (lane < 3) partial[part][warp][lane] = lane == 0 ? square : lane == 1 ? expected_re : expected_im;
        __syncthreads();
        auto both = [&](int what) { return partial[0][warp][what] + partial[kParts - 1][warp][what]; };
        square = both(0), expected_re = both(1), expected_im = both(2);
    }
    double rescued = 0;
    if (square < kSmallSquare) {  // rare: squares vanish. Both parts' warps sum the whole column
#pragma unroll 1
        for (int i = 0; i < 4 * kBlocks; ++i) {
            const amp_t amp = *reinterpret_cast<const amp_t*>(mine + 32 * i);
            const double re = amp.x * 0x1p600, im = amp.y * 0x1p600;
            rescued += re * re + im * im;
        }
        rescued = warp_sum(rescued);
    }
    const int exponent = scale_exponent(square, rescued);
    if (lane == 0 && part == 0) records[column] = {0, 0, expected_re, expected_im, 0, 0, exponent, 0};
    const unsigned row = (column & ~63u) | operand_row((int)column & 63);
    if (kParts > 1) __syncthreads();  // both warps of a column have summed it
#pragma unroll 1
    for (int block = part; block < kBlocks; block += kParts) {
        double2* const rows = tile + warp * kStride + block * kDepth;
        make_integers(rows, exponent, scheme);
        const unsigned at = (block * columns.row_stride + row) * kDepth;
        write_residues(reinterpret_cast<const uint4*>(rows), lane_words, operand, at, (int)row, columns.plane_bytes, scheme);
    }
}
