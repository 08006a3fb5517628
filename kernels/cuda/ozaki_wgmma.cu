// ozaki_wgmma.cu -- ozaki_product.cu's product by the warpgroup instructions of Hopper.
// Arrays     as in ozaki_product.cu
// Launch     two warpgroups that multiply and a warp that copies; any grid of whole clusters (grid-stride over tiles).
//            With QSIM_BESIDE a thread of the second warpgroup copies, and every part of the multiprocessor has registers left
// Work       2 K operations an entry and plane: bound by the tensor cores
// Layout     a tile is 128 rows x 256 columns, a warpgroup's part 64 x 256. The operands' rows are the 128-byte swizzle that the
//            instruction reads, so that a step of K is one bulk copy an operand; blocks of a cluster have the same columns and
//            copy a share of them to all. With QSIM_BESIDE the second warpgroup is a step behind the first, whose reductions then
//            run beside its products. With QSIM_HELD a block keeps its rows of a plane's matrix, all of K, while it goes along the
//            columns: a step reads half as much from the L2, which is what binds the other form
// Exactness  sums below 2^27 in INT32; residues are exact
// Source     PTX ISA, wgmma.m64n256k32 .s8 and its matrix descriptor
#include "ozaki.cuh"

constexpr int kHeld = QSIM_HELD;        // K / kDepth where the matrix is held, or 0
constexpr int kCluster = QSIM_CLUSTER;  // blocks one below the other: 1 or 2
constexpr int kStages = QSIM_STAGES;
constexpr bool kBeside = QSIM_BESIDE;   // a block of another kernel has room beside this one's, with 3 stages
constexpr int kConsumers = 8;           // warps that multiply
constexpr int kMostThreads = 384;       // of which registers would suffice: those that the products need, and no more
constexpr unsigned kMatrixBytes = kTileRows * kDepth, kColumnBytes = kTileColumns * kDepth;
constexpr unsigned kStageBytes = (kHeld ? 0 : kMatrixBytes) + kColumnBytes;
constexpr unsigned kOtherBytes = kHeld ? kHeld * kMatrixBytes : 2 * kOutBlock;  // behind the stages: the matrix, or the output on its way
static_assert(!kHeld || !kBeside, "a thread that multiplies cannot wait until all have left the matrix");

struct Product {
    index_t num_tiles;
    int row_bits, column_bits;  // log2 of the tiles down and across
    int depth_blocks;
};

struct Place {  // of a tile; rows fastest, so that a cluster's tiles are one column
    index_t plane, row, column;
    __device__ Place(index_t tile, const Product& product) {
        row = tile & ((1ull << product.row_bits) - 1);
        column = tile >> product.row_bits & ((1ull << product.column_bits) - 1);
        plane = tile >> (product.row_bits + product.column_bits);
    }
};

__device__ __forceinline__ void init_barrier(unsigned at, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}
__device__ __forceinline__ void expect_bytes(unsigned at, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}
__device__ __forceinline__ void wait_barrier(unsigned at, unsigned parity) {
    asm volatile(
        "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(at), "r"(parity)
        : "memory");
}
// Tells the barrier at the same place in block `rank` of the cluster.
__device__ __forceinline__ void arrive(unsigned at, unsigned rank) {
    asm volatile(
        "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(at),
        "r"(rank)
        : "memory");
}
__device__ __forceinline__ void copy_bulk(unsigned to, const signed char* from, unsigned bytes, unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
__device__ __forceinline__ void copy_bulk_to_all(unsigned to, const signed char* from, unsigned bytes, unsigned barrier) {
    const unsigned short all = (1 << kCluster) - 1;
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to), "l"(from),
                 "r"(bytes), "r"(barrier), "h"(all)
                 : "memory");
}
__device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Rows of 128 swizzled bytes, groups of 8 rows 1024 bytes apart.
__device__ __forceinline__ index_t descriptor(unsigned at) { return (index_t)(at >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62; }

__device__ __forceinline__ void multiply(int (&c)[128], index_t matrix, index_t columns, int keep) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," 
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," 
        "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," 
        "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63," 
        "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," 
        "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95," 
        "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111," 
        "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
        "}, %128, %129, p;\n}"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]), "+r"(c[4]), "+r"(c[5]), "+r"(c[6]), "+r"(c[7]),
          "+r"(c[8]), "+r"(c[9]), "+r"(c[10]), "+r"(c[11]), "+r"(c[12]), "+r"(c[13]), "+r"(c[14]), "+r"(c[15]),
          "+r"(c[16]), "+r"(c[17]), "+r"(c[18]), "+r"(c[19]), "+r"(c[20]), "+r"(c[21]), "+r"(c[22]), "+r"(c[23]),
          "+r"(c[24]), "+r"(c[25]), "+r"(c[26]), "+r"(c[27]), "+r"(c[28]), "+r"(c[29]), "+r"(c[30]), "+r"(c[31]),
          "+r"(c[32]), "+r"(c[33]), "+r"(c[34]), "+r"(c[35]), "+r"(c[36]), "+r"(c[37]), "+r"(c[38]), "+r"(c[39]),
          "+r"(c[40]), "+r"(c[41]), "+r"(c[42]), "+r"(c[43]), "+r"(c[44]), "+r"(c[45]), "+r"(c[46]), "+r"(c[47]),
          "+r"(c[48]), "+r"(c[49]), "+r"(c[50]), "+r"(c[51]), "+r"(c[52]), "+r"(c[53]), "+r"(c[54]), "+r"(c[55]),
          "+r"(c[56]), "+r"(c[57]), "+r"(c[58]), "+r"(c[59]), "+r"(c[60]), "+r"(c[61]), "+r"(c[62]), "+r"(c[63]),
          "+r"(c[64]), "+r"(c[65]), "+r"(c[66]), "+r"(c[67]), "+r"(c[68]), "+r"(c[69]), "+r"(c[70]), "+r"(c[71]),
          "+r"(c[72]), "+r"(c[73]), "+r"(c[74]), "+r"(c[75]), "+r"(c[76]), "+r"(c[77]), "+r"(c[78]), "+r"(c[79]),
          "+r"(c[80]), "+r"(c[81]), "+r"(c[82]), "+r"(c[83]), "+r"(c[84]), "+r"(c[85]), "+r"(c[86]), "+r"(c[87]),
          "+r"(c[88]), "+r"(c[89]), "+r"(c[90]), "+r"(c[91]), "+r"(c[92]), "+r"(c[93]), "+r"(c[94]), "+r"(c[95]),
          "+r"(c[96]), "+r"(c[97]), "+r"(c[98]), "+r"(c[99]), "+r"(c[100]), "+r"(c[101]), "+r"(c[102]), "+r"(c[103]),
          "+r"(c[104]), "+r"(c[105]), "+r"(c[106]), "+r"(c[107]), "+r"(c[108]), "+r"(c[109]), "+r"(c[110]), "+r"(c[111]),
          "+r"(c[112]), "+r"(c[113]), "+r"(c[114]), "+r"(c[115]), "+r"(c[116]), "+r"(c[117]), "+r"(c[118]), "+r"(c[119]),
          "+r"(c[120]), "+r"(c[121]), "+r"(c[122]), "+r"(c[123]), "+r"(c[124]), "+r"(c[125]), "+r"(c[126]), "+r"(c[127])
        : "l"(matrix), "l"(columns), "r"(keep));
}

// Residues of a warpgroup's 64 x 256 part, as a block of the output: in memory at `out` where the matrix is held, else in shared memory at `to`.
__device__ __forceinline__ void reduce_block(const int (&acc)[128], const Modulus& m, unsigned to, signed char* out) {
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
            const unsigned at = half * 2048 + group * 512;
            if (kHeld) *reinterpret_cast<uint4*>(out + at) = make_uint4(words[0], words[1], words[2], words[3]);
            else asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(to + at), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
        }
}

__device__ __forceinline__ void sync_group(int group) { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }

// Barrier 3 or 4 in turn, tile by tile: the first warpgroup is never two tiles ahead, since 2 K / kDepth + 1 > kStages.
__device__ __forceinline__ void tell_follower(unsigned turn) { asm volatile("bar.arrive %0, 256;" ::"r"(turn + 3) : "memory"); }
__device__ __forceinline__ void wait_for_leader(unsigned turn) { asm volatile("bar.sync %0, 256;" ::"r"(turn + 3) : "memory"); }

extern "C" __global__ void
#if QSIM_CLUSTER > 1
__cluster_dims__(QSIM_CLUSTER, 1, 1)
#endif
__launch_bounds__(kMostThreads, 1)
ozaki_wgmma(const signed char* __restrict__ matrix, const signed char* __restrict__ columns, signed char* __restrict__ out,
            const __grid_constant__ Product product, const __grid_constant__ Scheme scheme) {
    extern __shared__ __align__(1024) signed char shared[];
    const unsigned base = (shared_address(shared) + 1023) & ~1023u;
    const unsigned held_matrix = base + kStages * kStageBytes;
    const unsigned full = held_matrix + kOtherBytes, empty = full + 8 * kStages, matrix_full = empty + 8 * kStages, matrix_empty = matrix_full + 8;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const unsigned rank = kCluster > 1 ? cluster_rank() : 0;
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            init_barrier(full + 8 * s, 1);
            init_barrier(empty + 8 * s, kConsumers * kCluster);
        }
        init_barrier(matrix_full, 1);
        init_barrier(matrix_empty, kConsumers);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    if (kCluster > 1) cluster_sync();
    else __syncthreads();

    const int blocks = product.depth_blocks;
    const index_t across = 1ull << product.column_bits, down = 1ull << product.row_bits;
    // Tiles of the block: any, in turn; or those of one row of tiles in a share of the columns of all planes.
    const index_t groups = gridDim.x >> product.row_bits, group_number = blockIdx.x >> product.row_bits, all_columns = product.num_tiles >> product.row_bits;
    const index_t first = kHeld ? group_number * all_columns / groups << product.row_bits | (blockIdx.x & (down - 1)) : blockIdx.x;
    const index_t end = kHeld ? (group_number + 1) * all_columns / groups << product.row_bits : product.num_tiles;
    const index_t stride = kHeld ? down : gridDim.x;
    // Copies the next step of K, of this tile or the next; one thread.
    index_t load_tile = first, load_plane = ~0ull;
    int load_block = 0;
    unsigned load_stage = 0, load_parity = 1, matrix_parity = 1;
    auto load = [&] {
        if (load_tile >= end) return false;
        const Place place(load_tile, product);
        const index_t step = place.plane * blocks + load_block;
        const unsigned to = base + load_stage * kStageBytes, barrier = full + 8 * load_stage;
        wait_barrier(empty + 8 * load_stage, load_parity);
        expect_bytes(barrier, kStageBytes);
        if (!kHeld) copy_bulk(to, matrix + (step * down + place.row) * kMatrixBytes, kMatrixBytes, barrier);
        // each block copies its share of the columns, to all
        const unsigned share = kColumnBytes / kCluster, at = rank * share, columns_at = to + kStageBytes - kColumnBytes;
        const signed char* from = columns + (step * across + place.column) * kColumnBytes + at;
        if (kCluster > 1) copy_bulk_to_all(columns_at + at, from, share, barrier);
        else copy_bulk(columns_at, from, share, barrier);
        if (kHeld && place.plane != load_plane) {  // once its columns are on their way; all have left the plane before
            load_plane = place.plane;
            wait_barrier(matrix_empty, matrix_parity);
            matrix_parity ^= 1;
            expect_bytes(matrix_full, kOtherBytes);
            for (int b = 0; b < kHeld; ++b)
                copy_bulk(held_matrix + b * kMatrixBytes, matrix + ((step + b) * down + place.row) * kMatrixBytes, kMatrixBytes, matrix_full);
        }
        if (++load_stage == kStages) load_stage = 0, load_parity ^= 1;
        if (++load_block == blocks) load_block = 0, load_tile += stride;
        return true;
    };
    if (warp == kConsumers) {
        if (lane == 0)
            while (load()) {}
    } else {
        unsigned stage = 0, parity = 0, turn = 0;
        const int group = warp >> 2;
        const unsigned part = group * 64 * kDepth, staging = held_matrix + group * kOutBlock;
        unsigned held_parity = 0;
        index_t plane = ~0ull;
        const bool copies = kBeside && threadIdx.x == 128;
        if (copies)
            for (int s = 0; s < kStages; ++s) load();
        for (index_t tile = first; tile < end; tile += stride) {
            const Place place(tile, product);
            int acc[128];
#pragma unroll
            for (int i = 0; i < 128; ++i) acc[i] = 0;
            unsigned last = 0;
            if (kBeside && group == 1) wait_for_leader(turn);
            if (kHeld && place.plane != plane) {
                plane = place.plane;
                wait_barrier(matrix_full, held_parity);
                held_parity ^= 1;
            }
            for (int block = 0; block < blocks; ++block) {
                wait_barrier(full + 8 * stage, parity);
                const unsigned at = base + stage * kStageBytes;
                const index_t a = descriptor((kHeld ? held_matrix + block * kMatrixBytes : at) + part), b = descriptor(at + kStageBytes - kColumnBytes);
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
                for (int k = 0; k < 4; ++k) multiply(acc, a + 2 * k, b + 2 * k, block | k);
                asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
                if (kBeside && group == 0 && block == 0) tell_follower(turn);
                if (block > 0) {  // the products of the step before are done
                    if (lane < kCluster) arrive(empty + 8 * last, lane);
                    if (copies) load();
                }
                last = stage;
                if (++stage == kStages) stage = 0, parity ^= 1;
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            if (lane < kCluster) arrive(empty + 8 * last, lane);
            if (copies) load();
            if (kHeld && lane == 0 && (tile + stride >= end || Place(tile + stride, product).plane != plane)) arrive(matrix_empty, rank);
            turn ^= 1;
            const index_t block = ((place.plane * down + place.row) * 2 + group) * across + place.column;
            const Modulus& m = scheme.moduli[place.plane >> 1];
            const unsigned within = (warp & 3) * 4096 + out_place(lane >> 2, 0, lane & 3);
            if (kHeld) {
                reduce_block(acc, m, 0, out + block * kOutBlock + within);
                continue;
            }
            const bool leader = (threadIdx.x & 127) == 0;
            if (leader) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            sync_group(group);  // the block before has left shared memory
            reduce_block(acc, m, staging + within, nullptr);
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
