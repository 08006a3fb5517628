// ozaki_wgmma.cu -- ozaki_product.cu's product by the warpgroup instructions of Hopper.
// Arrays     as in ozaki_product.cu
// Launch     two warpgroups that multiply and a warp that copies; any grid of whole clusters (grid-stride over tiles)
// Work       2 K operations an entry and plane: bound by the tensor cores
// Layout     a tile is 128 rows x 256 columns, a warpgroup's part 64 x 256. The operands' rows are the 128-byte swizzle that the
//            instruction reads, so that a step of K is one bulk copy an operand; blocks of a cluster have the same columns and
//            copy a share of them to all
// Exactness  sums below 2^27 in INT32; residues are exact
// Source     PTX ISA, wgmma.m64n256k32 .s8
#include "ozaki_hopper.cuh"

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
