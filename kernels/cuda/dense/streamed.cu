// dense/streamed.cu -- one 2^k x 2^k unitary, k = 7 to 9, on any k qubits, in place, complex128 or complex64.
// Arrays     state amp_t[2^n] in/out; matrix double2 in fragment order, places uint64: offsets and slots of threads as they fetch,
//            offsets of iterations, of blocks of 16 rows, of lanes as they store, slots of lanes as they read (all from engines/cuda/dense/tables.py)
// Launch     kThreads a block, any grid (grid-stride over tiles); one tile of dynamic shared memory
// Work       two amplitudes' bytes and 6 * 2^k flop an amplitude: bound by tensor cores. Hopper's FP32 units do no more flop a
//            second, so complex64 is multiplied in FP64 too
// Layout     a tile is kGroups groups. Fragments of the matrix come from L2 behind the products; rows of the next tile come in as those
//            of this one are done with
#define QSIM_PRODUCTS 3
#include "dense/dense.cuh"

constexpr int kThreads = QSIM_THREADS;
constexpr int kGroups = QSIM_GROUPS;                   // of 8 columns, in a tile; any number
constexpr int kWarpGroups = QSIM_WARP_GROUPS;          // that one warp multiplies at a time
constexpr int kWarpsAcross = kGroups / kWarpGroups;
constexpr int kWarpsDown = kThreads / 32 / kWarpsAcross;
constexpr int kSweeps = kBlocks / kWarpsDown;          // over the tile, each for 16 rows of the matrix a warp
constexpr int kIterations = kGroupSlots / kThreads;    // each kThreads / 8 rows of a group
constexpr int kBlocksFetched = kThreads / 128;         // by one iteration
constexpr int kToNextRows = ((kWarpsDown - 1) * kBlocks + 1) * kFragment;
static_assert(QSIM_K >= 7 && QSIM_K <= 9, "smaller matrices are held in registers; a tile of 2^k rows must fit shared memory");
static_assert(kWarpsAcross * kWarpGroups == kGroups && kWarpsDown * kWarpsAcross == kThreads / 32, "warps share the groups evenly");
static_assert(kSweeps * kWarpsDown == kBlocks, "warps share the rows evenly");

struct StreamedTile {
    index_t num_groups;
    index_t fixed;          // control qubits at their state
    index_t column;         // offset of the column that a lane holds beside another
    unsigned second_slots;  // of rows 4 to 7 in shared memory, to be combined by XOR
    unsigned exchange;
    Runs runs;              // rows, the columns of a group and controls: every qubit that does not number groups
};

// Places in the tables; what is rarely needed is read when it is.
struct Places {
    const index_t* threads;
    __device__ __forceinline__ index_t iteration(int i) const { return __ldg(threads + 2 * kThreads + i); }
    __device__ __forceinline__ index_t block(int i) const { return __ldg(threads + 2 * kThreads + kIterations + i); }
    __device__ __forceinline__ index_t lane(int i) const { return __ldg(threads + 2 * kThreads + kIterations + kBlocks + i); }
};

__device__ __forceinline__ void find_bases(index_t (&bases)[kGroups], index_t tile, const StreamedTile& tiles) {
    const index_t group = tile * kGroups + threadIdx.x;
    if (threadIdx.x < kGroups) bases[threadIdx.x] = group < tiles.num_groups ? spread(group, tiles.runs) | tiles.fixed : kNone;
}

// Asks for kThreads / 8 rows of each group.
__device__ __forceinline__ void fetch(amp_t* to, const amp_t* from, const index_t (&bases)[kGroups]) {
#pragma unroll 4
    for (int group = 0; group < kGroups; ++group)
        if (bases[group] != kNone) copy_async(to + group * kGroupSlots, from + bases[group]);
}

// The matrix's fragments in the order of a warp's products, again and again: the next come in behind these.
struct Stream {
    const double2 *own_rows, *at;
    Fragment now;
};
__device__ __forceinline__ void advance(Stream& stream, Fragment& next, int sweep, int k) {
    stream.at = k + 1 < kBlocks ? stream.at + kFragment : sweep + 1 < kSweeps ? stream.at + kToNextRows : stream.own_rows;
    load(next, stream.at);
}

// Adds the products of 16 rows and 16 columns of the matrix with a warp's groups to the sums.
__device__ __forceinline__ void multiply(Sums (&sums)[kWarpGroups], const Fragment& f, const amp_t* first, const amp_t* second) {
    double2 both[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) both[i] = {f.re[i].x + f.im[i].x, f.re[i].y + f.im[i].y};
#pragma unroll
    for (int j = 0; j < kWarpGroups; ++j) {
        Column x;
        load(x, first + j * kGroupSlots, second + j * kGroupSlots);
        mma(sums[j][0], f.re, x.re);
        mma(sums[j][1], f.im, x.im);
        mma(sums[j][2], both, x.other);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads, QSIM_BLOCKS)
dense_streamed(amp_t* __restrict__ state, const double2* __restrict__ matrix, const index_t* __restrict__ places,
               const __grid_constant__ StreamedTile tiles) {
    extern __shared__ __align__(128) amp_t shared[];
    __shared__ index_t bases[4][kGroups];  // of the groups of this tile, two to come, and one that slow warps may still store
    const Places at = {places};
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row_block = warp / kWarpsAcross, group0 = warp % kWarpsAcross * kWarpGroups;
    const index_t read_slot = at.lane(64 + lane), num_tiles = (tiles.num_groups + kGroups - 1) / kGroups;
    const amp_t* from = state + __ldg(places + 2 * threadIdx.x);
    amp_t* to = shared + __ldg(places + 2 * threadIdx.x + 1);
    find_bases(bases[0], blockIdx.x, tiles);
    find_bases(bases[1], blockIdx.x + (index_t)gridDim.x, tiles);
    __syncthreads();
    for (int i = 0; i < kIterations; ++i) fetch(to + i * kThreads, from + at.iteration(i), bases[0]);
    commit_copies();
    Stream stream = {matrix + row_block * kBlocks * kFragment + lane, matrix + row_block * kBlocks * kFragment + lane, {}};
    load(stream.now, stream.at);
    int turn = 0;
    for (index_t tile = blockIdx.x; tile < num_tiles; tile += gridDim.x, turn = (turn + 1) & 3) {
        find_bases(bases[(turn + 2) & 3], tile + 2 * (index_t)gridDim.x, tiles);
        wait_copies<0>();
        __syncthreads();
#pragma unroll 1
        for (int sweep = 0; sweep < kSweeps; ++sweep) {
            Sums sums[kWarpGroups] = {};
            const amp_t* first = shared + group0 * kGroupSlots + read_slot;
            const amp_t* second = shared + group0 * kGroupSlots + (read_slot ^ tiles.second_slots);
#pragma unroll 1
            for (int k = 0; k < kBlocks; ++k, first += 128, second += 128) {
                Fragment next;
                advance(stream, next, sweep, k);
                multiply(sums, stream.now, first, second);
                stream.now = next;
                if (sweep + 1 == kSweeps && (k + 1) % kBlocksFetched == 0) {
                    __syncthreads();  // nobody reads these rows again
                    fetch(to + k / kBlocksFetched * kThreads, from + at.iteration(k / kBlocksFetched), bases[(turn + 1) & 3]);
                }
            }
            const index_t place = at.block(row_block + sweep * kWarpsDown);
            const Store lanes = {at.lane(2 * lane), at.lane(2 * lane + 1), tiles.column, tiles.exchange != 0};
#pragma unroll
            for (int j = 0; j < kWarpGroups; ++j) {
                const index_t base = bases[turn][group0 + j];
                store(sums[j], state + (base + place), lanes, base != kNone);
            }
        }
        commit_copies();
    }
}
