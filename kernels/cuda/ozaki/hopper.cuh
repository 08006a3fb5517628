// ozaki/hopper.cuh -- barriers, bulk copies, clusters and descriptors, shared by the products by warpgroup instructions.
// Source     PTX ISA, mbarrier, cp.async.bulk, wgmma's matrix descriptor
#pragma once
#include "ozaki/ozaki.cuh"

constexpr int kCluster = QSIM_CLUSTER;  // blocks one below the other: 1 or 2
constexpr int kStages = QSIM_STAGES;
constexpr int kConsumers = 8;           // warps that multiply; one more copies
constexpr int kMostThreads = 384;       // what a block's 288 threads count as where registers are shared out: 168 each
constexpr unsigned kMatrixBytes = kTileRows * kDepth;  // of a step of K

struct Product {
    index_t num_tiles;
    int row_bits, column_bits;  // log2 of the tiles down and across
    int depth_blocks;
};

__device__ __forceinline__ void init_barrier(unsigned at, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}
__device__ __forceinline__ void expect_bytes(unsigned at, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}
__device__ __forceinline__ void wait_barrier(unsigned at, unsigned parity) {
    asm volatile(
        "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(at), "r"(parity)
        : "memory");
}
// A stage's barriers: of bytes that have come, and of warps of the cluster that have left it.
__device__ __forceinline__ void init_stages(unsigned full, unsigned empty) {
    if (threadIdx.x != 0) return;
    for (int s = 0; s < kStages; ++s) {
        init_barrier(full + 8 * s, 1);
        init_barrier(empty + 8 * s, kConsumers * kCluster);
    }
}
// Tells the barrier at the same place in block `rank` of the cluster. What it orders is reading by products that are done: a release
// of the cluster's scope, which asks for no more, is a fence of the whole GPU for an assembler.
__device__ __forceinline__ void arrive(unsigned at, unsigned rank) {
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(at), "r"(rank)
                 : "memory");
}
__device__ __forceinline__ void copy_bulk(unsigned to, const signed char* from, unsigned bytes, unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
// A block's share of `bytes` that all of a cluster have, to all.
__device__ __forceinline__ void copy_shared(unsigned to, const signed char* from, unsigned bytes, unsigned rank, unsigned barrier) {
    const unsigned short all = (1 << kCluster) - 1;
    const unsigned share = bytes / kCluster, at = rank * share;
    if (kCluster == 1) return copy_bulk(to, from, bytes, barrier);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to + at),
                 "l"(from + at), "r"(share), "r"(barrier), "h"(all)
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
// Barriers of all blocks of a cluster are there.
__device__ __forceinline__ void sync_all() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    if (kCluster > 1) cluster_sync();
    else __syncthreads();
}

// The swizzle is of addresses, and repeats every 1024 bytes.
__device__ __forceinline__ unsigned aligned_address(const void* shared) { return (shared_address(shared) + 1023) & ~1023u; }

// Rows of 128 swizzled bytes, groups of 8 rows 1024 bytes apart.
__device__ __forceinline__ index_t descriptor(unsigned at) { return (index_t)(at >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62; }

// Operands of an instruction that sums in registers: c[at] to c[at + 15], and four times as many.
#define QSIM_SUMS_16(c, at)                                                                                            \
    "+r"(c[at]), "+r"(c[at + 1]), "+r"(c[at + 2]), "+r"(c[at + 3]), "+r"(c[at + 4]), "+r"(c[at + 5]), "+r"(c[at + 6]), \
        "+r"(c[at + 7]), "+r"(c[at + 8]), "+r"(c[at + 9]), "+r"(c[at + 10]), "+r"(c[at + 11]), "+r"(c[at + 12]),       \
        "+r"(c[at + 13]), "+r"(c[at + 14]), "+r"(c[at + 15])
#define QSIM_SUMS_64(c, at) QSIM_SUMS_16(c, at), QSIM_SUMS_16(c, at + 16), QSIM_SUMS_16(c, at + 32), QSIM_SUMS_16(c, at + 48)
// Their names in its text: the first 64.
#define QSIM_NAMES_64                                                \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"         \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
