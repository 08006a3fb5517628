// ozaki/product_wgmma.cu -- product.cu's product by the warpgroup instructions of Hopper.
// Arrays     as in product.cu
// Launch     two warpgroups that multiply and a warp that copies; any grid of whole clusters (grid-stride over tiles)
// Work       2 K operations an entry and plane: bound by the tensor cores
// Layout     a tile is 128 rows x 256 columns, a warpgroup's part 64 x 256. The operands' rows are the 128-byte swizzle that the
//            instruction reads, so that a step of K is one bulk copy an operand; blocks of a cluster have the same columns and
//            copy a share of them to all
// Exactness  sums below 2^27 in INT32; residues are exact
// Source     PTX ISA, wgmma.m64n256k32 .s8
#include "ozaki/hopper.cuh"

constexpr unsigned kColumnBytes = kTileColumns * kDepth, kStageBytes = kMatrixBytes + kColumnBytes;
constexpr unsigned kOtherBytes = 2 * kOutBlock;  // behind the stages: the output on its way

struct Place {  // of a tile; rows fastest, so that a cluster's tiles are one column
    index_t plane, row, column;
    __device__ Place(index_t tile, const Product& product) {
        row = tile & ((1ull << product.row_bits) - 1);
        column = tile >> product.row_bits & ((1ull << product.column_bits) - 1);
        plane = tile >> (product.row_bits + product.column_bits);
    }
};

__device__ __forceinline__ void multiply(int (&c)[128], index_t matrix, index_t columns, int keep) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {"
        QSIM_NAMES_64 ","
        "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," 
        "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95," 
        "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111," 
        "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
        "}, %128, %129, p;\n}"
        : QSIM_SUMS_64(c, 0), QSIM_SUMS_64(c, 64)
        : "l"(matrix), "l"(columns), "r"(keep));
}

// Residues of a warpgroup's 64 x 256 part, as a block of the output in shared memory.
__device__ __forceinline__ void reduce_block(const int (&acc)[128], const Modulus& m, unsigned to) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int group = 0; group < 4; ++group) {
            unsigned words[4];
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                const int* s = acc + (8 * group + 2 * w) * 4 + 2 * half;
                words[w] = pack_bytes(sum_residue(s[0], m), sum_residue(s[1], m), sum_residue(s[4], m), sum_residue(s[5], m));
            }
            asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(to + half * 2048 + group * 512), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                         : "memory");
        }
}

__device__ __forceinline__ void sync_group(int group) { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }

extern "C" __global__ void
#if QSIM_CLUSTER > 1
__cluster_dims__(QSIM_CLUSTER, 1, 1)
#endif
__launch_bounds__(kMostThreads, 1)
ozaki_wgmma(const signed char* __restrict__ matrix, const signed char* __restrict__ columns, signed char* __restrict__ out,
            const __grid_constant__ Product product, const __grid_constant__ Scheme scheme) {
    extern __shared__ __align__(1024) signed char shared[];
    const unsigned base = aligned_address(shared), output = base + kStages * kStageBytes, full = output + kOtherBytes, empty = full + 8 * kStages;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const unsigned rank = kCluster > 1 ? cluster_rank() : 0;
    init_stages(full, empty);
    sync_all();

    const int blocks = product.depth_blocks;
    const index_t across = 1ull << product.column_bits, down = 1ull << product.row_bits;
    if (warp == kConsumers) {
        unsigned stage = 0, parity = 1;
        for (index_t tile = blockIdx.x; lane == 0 && tile < product.num_tiles; tile += gridDim.x) {
            const Place place(tile, product);
            for (int block = 0; block < blocks; ++block) {
                const index_t step = place.plane * blocks + block;
                const unsigned to = base + stage * kStageBytes, barrier = full + 8 * stage;
                wait_barrier(empty + 8 * stage, parity);
                expect_bytes(barrier, kStageBytes);
                copy_bulk(to, matrix + (step * down + place.row) * kMatrixBytes, kMatrixBytes, barrier);
                copy_shared(to + kMatrixBytes, columns + (step * across + place.column) * kColumnBytes, kColumnBytes, rank, barrier);
                if (++stage == kStages) stage = 0, parity ^= 1;
            }
        }
    } else {
        unsigned stage = 0, parity = 0;
        const int group = warp >> 2;
        const unsigned part = group * 64 * kDepth, staging = output + group * kOutBlock;
        for (index_t tile = blockIdx.x; tile < product.num_tiles; tile += gridDim.x) {
            const Place place(tile, product);
            int acc[128];
#pragma unroll
            for (int i = 0; i < 128; ++i) acc[i] = 0;
            unsigned last = 0;
            for (int block = 0; block < blocks; ++block) {
                wait_barrier(full + 8 * stage, parity);
                const unsigned at = base + stage * kStageBytes;
                const index_t a = descriptor(at + part), b = descriptor(at + kMatrixBytes);
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
                for (int k = 0; k < 4; ++k) multiply(acc, a + 2 * k, b + 2 * k, block | k);
                asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
                if (block > 0 && lane < kCluster) arrive(empty + 8 * last, lane);  // the products of the step before are done
                last = stage;
                if (++stage == kStages) stage = 0, parity ^= 1;
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            if (lane < kCluster) arrive(empty + 8 * last, lane);
            const index_t block = ((place.plane * down + place.row) * 2 + group) * across + place.column;
            const bool leader = (threadIdx.x & 127) == 0;
            if (leader) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            sync_group(group);  // the block before has left shared memory
            reduce_block(acc, scheme.moduli[place.plane >> 1], staging + (warp & 3) * 4096 + out_place(lane >> 2, 0, lane & 3));
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            sync_group(group);
            if (leader)
                asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;" ::"l"(out + block * kOutBlock),
                             "r"(staging), "r"(kOutBlock)
                             : "memory");
        }
        if ((threadIdx.x & 127) == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    if (kCluster > 1) cluster_sync();  // no block may leave while another copies to it
}
