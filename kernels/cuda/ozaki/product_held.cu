// ozaki/product_held.cu -- product.cu's product where a block keeps its rows of a plane's matrix, all of K: K up to 1024.
// Arrays     as in product.cu
// Launch     two warpgroups that multiply and a warp that copies; a whole number of blocks for each row of tiles
// Work       2 K operations an entry and plane: bound by the tensor cores, and up to K = 256 by memory
// Layout     a tile is 128 rows x 128 columns, a warpgroup's part 64 x 128. A warpgroup has sums of two tiles: while one's are made, the
//            other's become residues. The operands' rows are the 128-byte swizzle that the instruction reads, so that a step of K is one
//            bulk copy; blocks of a cluster have the same columns and copy a share of them to all
// Exactness  sums below 2^27 in INT32; residues are exact
// Source     PTX ISA, wgmma.m64n128k32 .s8
#include "ozaki/hopper.cuh"

constexpr int kSteps = QSIM_DEPTH;  // K / kDepth
constexpr int kColumns = 128;  // of a tile
constexpr unsigned kStageBytes = kColumns * kDepth, kHeldBytes = kSteps * kMatrixBytes;
constexpr int kPieces = 4;  // 16 sums a thread each

__device__ __forceinline__ void multiply(int (&c)[64], index_t matrix, index_t columns, int keep) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
        QSIM_NAMES_64
        "}, %64, %65, p;\n}"
        : QSIM_SUMS_64(c, 0)
        : "l"(matrix), "l"(columns), "r"(keep));
}

// The sums are there: no use of them may come before.
__device__ __forceinline__ void arrived(int (&c)[64]) {
#pragma unroll
    for (int i = 0; i < 64; ++i) asm volatile("" : "+r"(c[i])::"memory");
}

// Where a thread's residues of a plane go.
struct Output {
    const Modulus& m;
    signed char* to;
    unsigned last_column;  // of tiles
    __device__ __forceinline__ int residue(int sum) const { return kSteps * kDepth <= kShortDepth ? short_sum_residue(sum, m) : sum_residue(sum, m); }
    // 16 of a tile's sums: columns of one group of 64, of rows 8 apart the first or the second.
    __device__ __forceinline__ void write(const int (&sums)[64], int piece, unsigned tile) const {
        const int half = piece & 1, group = piece >> 1;
        const unsigned column = tile & last_column;
        unsigned words[4];
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const int* s = sums + (8 * group + 2 * w) * 4 + 2 * half;
            words[w] = pack_bytes(residue(s[0]), residue(s[1]), residue(s[4]), residue(s[5]));
        }
        signed char* at = to + (index_t)(column >> 1) * kOutBlock + (column & 1) * 1024 + half * 2048 + group * 512;
        *reinterpret_cast<uint4*>(at) = make_uint4(words[0], words[1], words[2], words[3]);
    }
};

extern "C" __global__ void
#if QSIM_CLUSTER > 1
__cluster_dims__(QSIM_CLUSTER, 1, 1)
#endif
__launch_bounds__(kMostThreads, 1)
ozaki_held(const signed char* __restrict__ matrix, const signed char* __restrict__ columns, signed char* __restrict__ out,
           const __grid_constant__ Product product, const __grid_constant__ Scheme scheme) {
    extern __shared__ __align__(1024) signed char shared[];
    const unsigned base = aligned_address(shared), held = base + kStages * kStageBytes, full = held + kHeldBytes, empty = full + 8 * kStages;
    const unsigned matrix_full = empty + 8 * kStages;
    // a shuffle, so that the assembler knows that a warp is in one branch: else it waits for every product
    const int lane = threadIdx.x & 31, warp = __shfl_sync(~0u, (int)threadIdx.x >> 5, 0);
    const unsigned rank = kCluster > 1 ? cluster_rank() : 0;
    init_stages(full, empty);
    if (threadIdx.x == 0) init_barrier(matrix_full, 1);
    sync_all();

    // tiles of the block: one row of tiles, in a share of the columns of all planes
    const unsigned down = 1u << product.row_bits, row = blockIdx.x & (down - 1), groups = gridDim.x >> product.row_bits;
    const int across_bits = product.column_bits + 1;
    const index_t all = 2 * (product.num_tiles >> product.row_bits), number = blockIdx.x >> product.row_bits;
    const unsigned first = (unsigned)(number * all / groups), end = (unsigned)((number + 1) * all / groups), last_column = (1u << across_bits) - 1;
    if (warp == kConsumers) {
        unsigned stage = 0, parity = 1;
        for (unsigned tile = first; lane == 0 && tile < end; ++tile)
            for (int step = 0; step < kSteps; ++step) {
                wait_barrier(empty + 8 * stage, parity);
                expect_bytes(full + 8 * stage, kStageBytes);
                const index_t from = ((index_t)(tile >> across_bits) * kSteps + step << across_bits) + (tile & last_column);
                copy_shared(base + stage * kStageBytes, columns + from * kStageBytes, kStageBytes, rank, full + 8 * stage);
                if (++stage == kStages) stage = 0, parity ^= 1;
            }
    } else {
        const int group = warp >> 2;
        unsigned part = held + group * 64 * kDepth, stage = 0, parity = 0, matrix_parity = 0;
        int even[64] = {}, odd[64] = {};
        // A step of K into `sums`; those before are done.
        auto start = [&](int step, int (&sums)[64]) {
            wait_barrier(full + 8 * stage, parity);
            const unsigned a = part + step * kMatrixBytes, b = base + stage * kStageBytes;
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 4; ++k) multiply(sums, descriptor(a | 32 * k), descriptor(b | 32 * k), step | k);
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
        };
        auto release_before = [&] {  // the stage before this one
            if (lane < kCluster) arrive(empty + 8 * (stage == 0 ? kStages - 1 : stage - 1), lane);
        };
        auto next = [&] {
            if (++stage == kStages) stage = 0, parity ^= 1;
        };
        for (unsigned tile = first; tile < end;) {  // plane by plane
            const unsigned plane = tile >> across_bits, last = min(end, (plane + 1) << across_bits);
            asm volatile("bar.sync 1, 256;" ::: "memory");  // all have left the matrix of the plane before
            if (threadIdx.x == 0) {
                expect_bytes(matrix_full, kHeldBytes);
                for (int step = 0; step < kSteps; ++step)
                    copy_bulk(held + step * kMatrixBytes, matrix + (((index_t)plane * kSteps + step) * down + row) * kMatrixBytes, kMatrixBytes, matrix_full);
            }
            wait_barrier(matrix_full, matrix_parity);
            matrix_parity ^= 1;
            const index_t block = (((index_t)plane * down + row) * 2 + group) << product.column_bits;
            const Output output{scheme.moduli[plane >> 1], out + block * kOutBlock + (warp & 3) * 4096 + out_place(lane >> 2, 0, lane & 3), last_column};
            // Sums of a tile into `now` while those of the tile before it, `done`, become residues.
            auto pass = [&](int (&now)[64], int (&ready)[64], unsigned done) {
                asm volatile("" : "+r"(part));  // else addresses of all steps take registers
#pragma unroll
                for (int step = 0; step < kSteps; ++step) {
                    start(step, now);
                    release_before();
                    next();
                    if (step == 0) arrived(ready);
#pragma unroll
                    for (int piece = 0; piece < kPieces; ++piece)
                        if (piece * kSteps / kPieces == step) output.write(ready, piece, done);
                }
            };
            auto finish = [&](int (&ready)[64], unsigned done) {
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
                release_before();
                arrived(ready);
#pragma unroll
                for (int piece = 0; piece < kPieces; ++piece) output.write(ready, piece, done);
            };
#pragma unroll
            for (int step = 0; step < kSteps; ++step) {
                start(step, even);
                if (step > 0) release_before();
                next();
            }
            for (++tile; tile + 1 < last; tile += 2) {
                pass(odd, even, tile - 1);
                pass(even, odd, tile);
            }
            if (tile < last) {
                pass(odd, even, tile - 1);
                finish(odd, tile++);
            } else {
                finish(even, tile - 1);
            }
        }
    }
    if (kCluster > 1) cluster_sync();  // no block may leave while another copies to it
}
