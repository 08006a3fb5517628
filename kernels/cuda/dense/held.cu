// dense/held.cu -- one 2^k x 2^k unitary, k = 4 to 6, on any k qubits, in place, complex128 or complex64.
// Arrays     state amp_t[2^n] in/out; matrix double2 in fragment order, places uint64: offsets and slots of threads as they fetch,
//            offsets of lanes as they store, slots of lanes as they read (all from engines/cuda/dense/tables.py); tickets uint64[1], 0 at the launch
// Launch     kThreads a block, at most num_tiles blocks, kStages tiles of dynamic shared memory
// Work       two amplitudes' bytes and 6 * 2^k (three products) or 8 * 2^k flop an amplitude: bound by memory. Hopper's FP32 units
//            do no more flop a second, so complex64 is multiplied in FP64 too
// Layout     warps keep their rows of the matrix in registers; tiles of kGroups groups come in behind the products, in a ring
#include "dense/dense.cuh"

constexpr int kThreads = QSIM_THREADS;
constexpr int kGroups = QSIM_GROUPS;                   // of 8 columns, in a tile; a power of two
constexpr int kWarpRows = QSIM_WARP_ROWS;              // blocks of 16 rows of the matrix that a warp holds
constexpr int kStages = QSIM_STAGES;                   // tiles in shared memory, all but one of them on their way
constexpr int kTeam = kBlocks / kWarpRows;             // warps that share groups
constexpr int kTeams = kThreads / 32 / kTeam;
constexpr int kTileSlots = kGroups * kGroupSlots;
constexpr int kIterations = kTileSlots / kThreads;
static_assert(QSIM_K >= 4 && QSIM_K <= 6, "larger matrices do not fit registers");
static_assert(kTeams * kTeam * 32 == kThreads && kGroups % kTeams == 0, "teams share the groups evenly");
static_assert(kIterations <= 16 && kGroups <= 16 && (kGroups & (kGroups - 1)) == 0, "places must fit the record");

struct HeldTile {
    index_t num_tiles;
    index_t fixed;               // control qubits at their state
    index_t column;              // offset of the column that a lane holds beside another
    index_t fetch_offset[16];    // of iterations
    index_t group_offset[16];
    index_t block_offset[4];     // per 16 rows of the matrix
    unsigned fetch_slot[16];     // of iterations, to be combined by XOR
    unsigned second_slots;       // of rows 4 to 7 in shared memory, to be combined by XOR
    unsigned exchange;
    unsigned num_slots;          // of a tile that exist: fewer where a state has no qubit for a group's number
    Runs runs;                   // every qubit that does not number tiles
};

using Held = Fragment[kWarpRows][kBlocks];

// The sums of a warp's rows with one group. `one` is 1, read where it is needed: re + im that the compiler knew to be the same for all
// groups would be held, and there are too few registers.
__device__ __forceinline__ void multiply(Sums (&sums)[kWarpRows], const Held& held, const amp_t* first, const amp_t* second,
                                         const volatile double& one) {
#pragma unroll
    for (int k = 0; k < kBlocks; ++k) {
        Column x;
        load(x, first + k * 128, second + k * 128);
        const double unit = kSums == 3 ? one : 1;
#pragma unroll
        for (int r = 0; r < kWarpRows; ++r) {
            const Fragment& f = held[r][k];
            mma(sums[r][0], f.re, x.re);
            if constexpr (kSums == 3) {
                double2 both[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) both[i] = {fma(f.im[i].x, unit, f.re[i].x), fma(f.im[i].y, unit, f.re[i].y)};  // rounds once
                mma(sums[r][1], f.im, x.im);
                mma(sums[r][2], both, x.other);
            } else {
                mma(sums[r][1], f.re, x.im);
            }
        }
        if constexpr (kSums == 2)
#pragma unroll
            for (int r = 0; r < kWarpRows; ++r) {
                mma(sums[r][0], held[r][k].im, x.other);
                mma(sums[r][1], held[r][k].im, x.re);
            }
    }
}

// One thread's part of every tile.
struct Thread {
    index_t offset;                         // at which it fetches in the first iteration
    unsigned write_slot, read_slot, team, row_block;
    Store to;
};
__device__ __forceinline__ Thread thread_of(const index_t* places, const HeldTile& tiles) {
    const index_t* lanes = places + 2 * kThreads;
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const Store to = {__ldg(lanes + 2 * lane), __ldg(lanes + 2 * lane + 1), tiles.column, tiles.exchange != 0};
    const index_t *thread = places + 2 * threadIdx.x, *read = lanes + 64 + lane;
    return {__ldg(thread), (unsigned)__ldg(thread + 1), (unsigned)__ldg(read), warp / kTeam, warp % kTeam * kWarpRows, to};
}

// Asks for all amplitudes of a tile.
__device__ __forceinline__ void fetch(amp_t* buffer, const amp_t* state, index_t base, const Thread& me, const HeldTile& tiles) {
    if (base != kNone && threadIdx.x < tiles.num_slots) {
        const amp_t* from = state + (base + me.offset);
#pragma unroll
        for (int i = 0; i < kIterations; ++i)
            if (i == 0 || i * kThreads < tiles.num_slots)
                copy_async(buffer + (me.write_slot ^ tiles.fetch_slot[i]), from + tiles.fetch_offset[i]);
    }
    commit_copies();
}

// Multiplies a tile's groups and stores them where they were.
__device__ __forceinline__ void apply(amp_t* to, const amp_t* tile, const Held& held, const Thread& me, const HeldTile& tiles,
                                      const volatile double& one) {
#pragma unroll 1
    for (unsigned group = me.team; group < kGroups; group += kTeams) {
        Sums sums[kWarpRows] = {};
        const amp_t* amps = tile + group * kGroupSlots;
        multiply(sums, held, amps + me.read_slot, amps + (me.read_slot ^ tiles.second_slots), one);
#pragma unroll
        for (int r = 0; r < kWarpRows; ++r) {
            const index_t offset = tiles.group_offset[group] + tiles.block_offset[me.row_block + r];
            store(sums[r], to + offset, me.to, group * kGroupSlots < tiles.num_slots);
        }
    }
}

__device__ __forceinline__ index_t base_of(index_t tile, const HeldTile& tiles) {
    return tile < tiles.num_tiles ? spread(tile, tiles.runs) | tiles.fixed : kNone;
}

extern "C" __global__ void __launch_bounds__(kThreads, QSIM_BLOCKS)
dense_held(amp_t* __restrict__ state, const double2* __restrict__ matrix, const index_t* __restrict__ places,
           index_t* __restrict__ tickets, const __grid_constant__ HeldTile tiles) {
    extern __shared__ __align__(128) amp_t shared[];
    // Tiles are handed out in order: blocks that drifted apart would spread their accesses over more pages of memory.
    __shared__ index_t bases[kStages + 1];  // of the tile at hand, of those in shared memory, and of one that is to be asked for
    __shared__ double one;
    const Thread me = thread_of(places, tiles);
    Held held;
#pragma unroll
    for (int r = 0; r < kWarpRows; ++r)
#pragma unroll
        for (int k = 0; k < kBlocks; ++k) load(held[r][k], matrix + ((me.row_block + r) * kBlocks + k) * kFragment + (threadIdx.x & 31));
    index_t ticket = 0;
    if (threadIdx.x == 0) {
        one = 1;
        ticket = atomicAdd(tickets, 1ull);
    }
    if (threadIdx.x < kStages) bases[threadIdx.x] = base_of(blockIdx.x + threadIdx.x * (index_t)gridDim.x, tiles);
    __syncthreads();
#pragma unroll 1
    for (int s = 0; s < kStages - 1; ++s) fetch(shared + s * kTileSlots, state, bases[s], me, tiles);
    int stage = 0, turn = 0;
    const auto after = [&](int by) { return turn + by <= kStages ? turn + by : turn + by - kStages - 1; };
#pragma unroll 1
    for (;; turn = after(1), stage = stage + 1 < kStages ? stage + 1 : 0) {
        wait_copies<kStages - 2>();
        __syncthreads();
        const index_t base = bases[turn];
        if (base == kNone) break;
        if (threadIdx.x == 0) {  // the answer takes long: it is waited for a tile later
            bases[after(kStages)] = base_of(kStages * (index_t)gridDim.x + ticket, tiles);
            ticket = atomicAdd(tickets, 1ull);
        }
        fetch(shared + (stage > 0 ? stage - 1 : kStages - 1) * kTileSlots, state, bases[after(kStages - 1)], me, tiles);
        apply(state + base, shared + stage * kTileSlots, held, me, tiles, one);
    }
}
