// ozaki/product.cu -- one real INT8 product per plane, each sum reduced to its residue in registers: out = matrix * columns mod m.
// Arrays     matrix int8 [plane][K / 128][K][128], columns int8 [plane][K / 128][row_stride][128], as ozaki.cuh says;
//            out int8 (int32 where QSIM_RAW is 1), as ozaki.cuh says
// Launch     ozaki_product: 256 threads, any grid (grid-stride over tiles); ozaki_naive: 256 threads, one entry a thread
// Work       2 K operations an entry and plane: bound by the tensor cores
// Layout     a tile is 128 rows x 256 columns, a warp's part 64 x 64; K in steps of 128 through kStages buffers
// Exactness  sums below 2^27 in INT32; residues are exact
// Source     PTX ISA, mma.sync.m16n8k32 .s8 fragment layout
#include "ozaki/ozaki.cuh"

#ifndef QSIM_RAW
#define QSIM_RAW 0
#endif
#if __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ == 1200
constexpr int kStages = 2;
#elif __CUDA_ARCH__ == 800
constexpr int kStages = 3;
#else
constexpr int kStages = 4;
#endif
constexpr int kMatrixBytes = kTileRows * kDepth, kColumnBytes = kTileColumns * kDepth, kStageBytes = kMatrixBytes + kColumnBytes;
#if QSIM_RAW
using out_t = int;
#else
using out_t = signed char;
#endif

struct Product {
    index_t num_tiles;
    int row_bits, column_bits;  // log2 of the tiles down and across
    int depth_blocks;
};

// One step of K: 128 entries from shared memory at `stage`.
__device__ __forceinline__ void multiply(int (&acc)[4][8][4], unsigned stage, unsigned matrix_at, unsigned columns_at) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        unsigned a[4][4], b[4][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) load_matrices(a[i], (stage + matrix_at + i * 16 * kDepth) ^ (k << 5));
#pragma unroll
        for (int j = 0; j < 4; ++j) load_matrices(b[j], (stage + columns_at + j * 16 * kDepth) ^ (k << 5));
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 8; ++j) mma(acc[i][j], a[i], b[j >> 1][2 * (j & 1)], b[j >> 1][2 * (j & 1) + 1]);
    }
}

// Writes a warp's 64 x 64 part of a block of the output and clears it: 16 columns of a row per thread, side by side.
__device__ __forceinline__ void store(int (&acc)[4][8][4], const Modulus& m, out_t* block, int group, int lane) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            out_t* to = block + out_place(i * 16 + half * 8 + (lane >> 2), group, lane & 3);
#if QSIM_RAW
#pragma unroll
            for (int j = 0; j < 8; ++j) *reinterpret_cast<int2*>(to + 2 * j) = make_int2(acc[i][j][2 * half], acc[i][j][2 * half + 1]);
#else
            unsigned words[4];
#pragma unroll
            for (int w = 0; w < 4; ++w)
                words[w] = pack_bytes(sum_residue(acc[i][2 * w][2 * half], m), sum_residue(acc[i][2 * w][2 * half + 1], m),
                                      sum_residue(acc[i][2 * w + 1][2 * half], m), sum_residue(acc[i][2 * w + 1][2 * half + 1], m));
            *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
#endif
#pragma unroll
            for (int j = 0; j < 8; ++j) acc[i][j][2 * half] = acc[i][j][2 * half + 1] = 0;
        }
}

extern "C" __global__ void __launch_bounds__(256, 1)
ozaki_product(const signed char* __restrict__ matrix, const signed char* __restrict__ columns, out_t* __restrict__ out,
              const __grid_constant__ Product product, const __grid_constant__ Scheme scheme) {
    extern __shared__ __align__(1024) signed char shared[];
    const unsigned base = shared_address(shared);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int warp_row = (warp & 1) * 64, warp_column = (warp >> 1) * 64;
    const unsigned line = lane & 7;
    const unsigned matrix_at = (warp_row + (lane & 15)) * kDepth + (((lane >> 4) ^ line) << 4);
    const unsigned columns_at = kMatrixBytes + (warp_column + line + ((lane >> 4) << 3)) * kDepth + ((((lane >> 3) & 1) ^ line) << 4);
    const int blocks = product.depth_blocks, tile_bits = product.row_bits + product.column_bits;
    const index_t across = 1ull << product.column_bits, down = 1ull << product.row_bits;

    index_t load_tile = blockIdx.x;
    int load_block = 0, load_stage = 0;
    auto load = [&] {  // the next step of K, of this tile or the next
        if (load_tile < product.num_tiles) {
            const index_t plane = load_tile >> tile_bits, row = load_tile & (down - 1), column = load_tile >> product.row_bits & (across - 1);
            const index_t step = plane * blocks + load_block;
            const unsigned to = base + load_stage * kStageBytes + threadIdx.x * 16;
            const signed char* from = matrix + (step * down + row) * kMatrixBytes + threadIdx.x * 16;
#pragma unroll
            for (int i = 0; i < kMatrixBytes / 4096; ++i) copy_line(to + i * 4096, from + i * 4096);
            from = columns + (step * across + column) * kColumnBytes + threadIdx.x * 16;
#pragma unroll
            for (int i = 0; i < kColumnBytes / 4096; ++i) copy_line(to + kMatrixBytes + i * 4096, from + i * 4096);
            if (++load_block == blocks) load_block = 0, load_tile += gridDim.x;
            load_stage = load_stage + 1 == kStages ? 0 : load_stage + 1;
        }
        commit_copies();
    };
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) load();
    int acc[4][8][4] = {}, stage = 0;
    for (index_t tile = blockIdx.x; tile < product.num_tiles; tile += gridDim.x) {
#pragma unroll 1
        for (int block = 0; block < blocks; ++block) {
            wait_copies<kStages - 2>();
            __syncthreads();  // the step has arrived for all, and all have left the buffer that is loaded next
            load();
            multiply(acc, base + stage * kStageBytes, matrix_at, columns_at);
            stage = stage + 1 == kStages ? 0 : stage + 1;
        }
        const index_t plane = tile >> tile_bits, row = tile & (down - 1), column = tile >> product.row_bits & (across - 1);
        const index_t block = ((plane * down + row) * 2 + (warp & 1)) * across + column;
        store(acc, scheme.moduli[plane >> 1], out + block * kOutBlock, warp >> 1, lane);
    }
}

// The founding experiment's first kernel and the reference of the other: raw sums, rows and columns in the operands' own order.
extern "C" __global__ void __launch_bounds__(256)
ozaki_naive(const signed char* __restrict__ matrix, const signed char* __restrict__ columns, int* __restrict__ out, index_t num_entries,
            int size, index_t stride) {
    for (index_t e = (index_t)blockIdx.x * blockDim.x + threadIdx.x; e < num_entries; e += (index_t)gridDim.x * blockDim.x) {
        const index_t column = e % stride, row = e / stride % size, plane = e / (stride * size);
        int sum = 0;
        for (int k = 0; k < size; ++k) {
            const int place = word_offset((int)row, k & 31) | k >> 5 & 3, other = word_offset((int)column, k & 31) | k >> 5 & 3;
            const index_t step = plane * (size / kDepth) + k / kDepth;
            sum += matrix[(step * size + row) * kDepth + place] * columns[(step * stride + column) * kDepth + other];
        }
        out[e] = sum;
    }
}
