// dense_block.cu -- one 2^k x 2^k unitary on any k qubits, in place, by FP64 tensor cores, complex128 or complex64.
// Arrays     state amp_t[2^n] in/out; matrix double2 in fragment order, places uint64: offsets of threads, of iterations, of
//            blocks of 16 rows, of lanes as they store, slots of lanes as they read (all from cuda_dense.py)
// Launch     kThreads a block, any grid (grid-stride over tiles); kBuffers tiles of dynamic shared memory
// Work       two amplitudes' bytes and 6 * 2^k (three products) or 8 * 2^k flop an amplitude: bound by memory up to k = 6 (complex64:
//            k = 5), then by tensor cores. Hopper's FP32 units do no more flop a second, so complex64 is multiplied in FP64 too
// Layout     a tile is kGroups groups of 2^k rows x 8 columns. The lowest qubits of a group fill 128-byte rows of shared memory,
//            swizzled so that a quarter warp (complex64: half a warp) reads from distinct banks, whichever qubits are targets
// Exactness  FP64 products summed in FP64, in the tensor core's order. Three products: P = Ar Xr, Q = Ai Xi, S = (Ar + Ai)(Xr + Xi),
//            y = (P - Q, S - (P + Q)). Rows of a unitary have norm 1, so each part is off by at most (2^k + 1) 2^-53 (real) and
//            3 (2^k + 4) 2^-53 (imaginary) of its column's norm; four products: (2^k + 1) 2^-53 both. With Ai = 0 and Xi = 0 the
//            sums S and P are the same and y is real exactly. complex64 adds the rounding of each result, 2^-24
// Source     PTX ISA, mma.sync.m16n8k16 .f64 fragment layout; Higham, Accuracy and Stability of Numerical Algorithms, 23.2.4
#include "common.cuh"
#include "ozaki_ptx.cuh"

constexpr int kRows = 1 << QSIM_K;
constexpr int kGroups = QSIM_GROUPS;                   // of 8 columns, in a tile; any number
constexpr int kWarpGroups = QSIM_WARP_GROUPS;          // that one warp multiplies at a time
constexpr int kBuffers = QSIM_BUFFERS;                 // 2: a whole tile comes in behind the arithmetic; 1: rows as they are done with
constexpr int kThreads = QSIM_THREADS;
constexpr int kWarpsAcross = kGroups / kWarpGroups;
constexpr int kWarpsDown = kThreads / 32 / kWarpsAcross;
constexpr int kBlocks = kRows / 16;                    // of 16 rows or 16 columns of the matrix
constexpr int kSweeps = kBlocks / kWarpsDown;          // over the tile, each for 16 rows of the matrix a warp
constexpr int kGroupSlots = kRows * 8;                 // amplitudes
constexpr int kAtOnce = kThreads > kGroupSlots ? kThreads / kGroupSlots : 1;       // groups that the threads fetch together
constexpr int kIterations = kThreads > kGroupSlots ? 1 : kGroupSlots / kThreads;   // each kThreads / 8 rows of a group
constexpr int kBlocksFetched = kThreads / 128;         // by one iteration
constexpr int kSums = QSIM_PRODUCTS == 3 ? 3 : 2;
constexpr bool kAhead = QSIM_K > 5;                    // fragments come from L2 behind the products; smaller matrices stay in L1
constexpr int kFragment = 8 * 32;                      // double2 of 16 x 16 entries of the matrix
constexpr int kToNextRows = ((kWarpsDown - 1) * kBlocks + 1) * kFragment;
constexpr index_t kNone = ~0ull;                       // in place of a group's base: there is no such group
static_assert(QSIM_K >= 4 && QSIM_K <= 9, "a tile of 2^k rows must fit shared memory");
static_assert(kWarpsAcross * kWarpGroups == kGroups && kWarpsDown * kWarpsAcross == kThreads / 32, "warps share the groups evenly");
static_assert(kAhead || kSweeps == 1, "matrices that do not fit L1 are read ahead");
static_assert(kSweeps * kWarpsDown == kBlocks && kGroups % kAtOnce == 0, "warps share the rows evenly");

struct DenseTile {
    index_t num_groups;
    index_t fixed;          // control qubits at their state
    index_t column;         // offset of the column that a lane holds beside another
    unsigned second_slots;  // of rows 4 to 7 in shared memory, to be combined by XOR
    unsigned exchange;      // whether lanes exchange rows for columns before they store
    Runs runs;              // rows, the columns of a group and controls: every qubit that does not number groups
};

__device__ __forceinline__ void mma(double (&c)[4], const double2 (&a)[4], const double (&b)[4]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5,%6,%7,%8,%9,%10,%11},{%12,%13,%14,%15},{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0].x), "d"(a[0].y), "d"(a[1].x), "d"(a[1].y), "d"(a[2].x), "d"(a[2].y), "d"(a[3].x), "d"(a[3].y), "d"(b[0]), "d"(b[1]),
          "d"(b[2]), "d"(b[3]));
}

// Parts of 16 x 16 entries of the matrix as one lane holds them.
struct Fragment {
    double2 re[4], im[4];
};
__device__ __forceinline__ void load(Fragment& f, const double2* from) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        f.re[i] = __ldg(from + i * 32);
        f.im[i] = __ldg(from + (4 + i) * 32);
    }
}

// Adds the products of 16 rows and 16 columns of the matrix with a warp's groups to the sums; x[i] is the lane's row 4 i.
__device__ __forceinline__ void multiply(double (&sums)[kWarpGroups][kSums][4], const Fragment& f, const amp_t* const (&x)[4]) {
    double2 both[4];
    if constexpr (kSums == 3)
#pragma unroll
        for (int i = 0; i < 4; ++i) both[i] = {f.re[i].x + f.im[i].x, f.re[i].y + f.im[i].y};
#pragma unroll
    for (int j = 0; j < kWarpGroups; ++j) {
        double re[4], im[4], other[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const amp_t amp = x[i][j * kGroupSlots];
            re[i] = amp.x;
            im[i] = amp.y;
            other[i] = kSums == 3 ? re[i] + im[i] : -im[i];
        }
        mma(sums[j][0], f.re, re);
        if constexpr (kSums == 3) {
            mma(sums[j][1], f.im, im);
            mma(sums[j][2], both, other);
        } else {
            mma(sums[j][1], f.re, im);
            mma(sums[j][0], f.im, other);
            mma(sums[j][1], f.im, re);
        }
    }
}

__device__ __forceinline__ amp_t amplitude(const double (&sums)[kSums][4], int i) {
    if constexpr (kSums == 3) return {(real_t)(sums[0][i] - sums[1][i]), (real_t)(sums[2][i] - (sums[0][i] + sums[1][i]))};
    return {(real_t)sums[0][i], (real_t)sums[1][i]};
}

// Lanes that differ in bit 0 trade rows g + 8 of the lower for rows g of the upper: then each has one row, in two columns.
__device__ __forceinline__ void trade(amp_t& kept, amp_t& other, bool upper) {
    const amp_t sent = upper ? kept : other;
    kept = upper ? other : kept;
    other = {__shfl_xor_sync(0xffffffffu, sent.x, 1), __shfl_xor_sync(0xffffffffu, sent.y, 1)};
}

extern "C" __global__ void __launch_bounds__(kThreads, QSIM_BLOCKS)
dense_block(amp_t* __restrict__ state, const double2* __restrict__ matrix, const index_t* __restrict__ places,
            const __grid_constant__ DenseTile tiles) {
    extern __shared__ __align__(128) amp_t shared[];
    __shared__ index_t bases[4][kGroups];  // of the groups of this tile, two to come, and one that slow warps may still store
    const index_t* iteration_offset = places + 2 * kThreads;       // after (offset in the state, slot) of each thread
    const index_t* block_offset = iteration_offset + kIterations;  // per 16 rows of the matrix
    const index_t* lane_offset = block_offset + kBlocks;           // two per lane
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int row_block = warp / kWarpsAcross, group0 = (warp % kWarpsAcross) * kWarpGroups;
    const index_t read_slot = __ldg(lane_offset + 64 + lane), write_slot = __ldg(places + 2 * threadIdx.x + 1);
    const index_t thread_offset = __ldg(places + 2 * threadIdx.x);
    const index_t num_tiles = (tiles.num_groups + kGroups - 1) / kGroups;

    const auto find_bases = [&](index_t tile, int turn) {
        const index_t group = tile * kGroups + threadIdx.x;
        if (threadIdx.x < kGroups) bases[turn][threadIdx.x] = group < tiles.num_groups ? spread(group, tiles.runs) | tiles.fixed : kNone;
    };
    // Asks for kThreads / 8 rows of each group (all rows where there are fewer).
    const auto fetch = [&](int iteration, int turn, amp_t* buffer) {
        const index_t offset = thread_offset + __ldg(iteration_offset + iteration);
#pragma unroll 4
        for (int first = 0; first < kGroups; first += kAtOnce) {
            const int group = first + (kAtOnce > 1 ? threadIdx.x / kGroupSlots : 0);
            const index_t base = bases[turn][group];
            if (base != kNone) copy_async(buffer + group * kGroupSlots + iteration * kThreads + write_slot, state + base + offset);
        }
    };
    const auto fetch_all = [&](int turn, amp_t* buffer) {
        for (int i = 0; i < kIterations; ++i) fetch(i, turn, buffer);
        commit_copies();
    };

    find_bases(blockIdx.x, 0);
    find_bases(blockIdx.x + (index_t)gridDim.x, 1);
    __syncthreads();
    fetch_all(0, shared);
    const double2* own_rows = matrix + row_block * kBlocks * kFragment + lane;
    const double2* fragments = own_rows;
    Fragment now;
    if constexpr (kAhead) load(now, fragments);
    int turn = 0, buffer = 0;
    for (index_t tile = blockIdx.x; tile < num_tiles; tile += gridDim.x) {
        const int next_turn = (turn + 1) & 3;
        const amp_t* own = shared + buffer * kGroups * kGroupSlots;
        if constexpr (kBuffers == 2) fetch_all(next_turn, shared + (buffer ^ 1) * kGroups * kGroupSlots);
        find_bases(tile + 2 * (index_t)gridDim.x, (turn + 2) & 3);
        wait_copies<kBuffers - 1>();
        __syncthreads();

#pragma unroll 1
        for (int sweep = 0; sweep < kSweeps; ++sweep) {
            double sums[kWarpGroups][kSums][4] = {};
            const amp_t* first = own + group0 * kGroupSlots + read_slot;
            const amp_t* second = own + group0 * kGroupSlots + (read_slot ^ tiles.second_slots);
#pragma unroll 1
            for (int k = 0; k < kBlocks; ++k) {
                const amp_t* const x[4] = {first, second, first + 64, second + 64};
                if constexpr (kAhead) {  // the matrix goes round: its next fragments come in behind these products
                    const bool last = k + 1 == kBlocks;
                    fragments = !last ? fragments + kFragment : sweep + 1 < kSweeps ? fragments + kToNextRows : own_rows;
                    Fragment next;
                    load(next, fragments);
                    multiply(sums, now, x);
                    now = next;
                } else {
                    load(now, own_rows + k * kFragment);
                    multiply(sums, now, x);
                }
                first += 128;
                second += 128;
                if constexpr (kBuffers == 1)
                    if (sweep + 1 == kSweeps && (k + 1) % kBlocksFetched == 0) {
                        __syncthreads();  // nobody reads these rows again
                        fetch(k / kBlocksFetched, next_turn, shared);
                    }
            }
            const index_t place = __ldg(block_offset + row_block + sweep * kWarpsDown);
#pragma unroll
            for (int j = 0; j < kWarpGroups; ++j) {
                const index_t base = bases[turn][group0 + j];
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    amp_t kept = amplitude(sums[j], r), other = amplitude(sums[j], 2 + r);
                    if (tiles.exchange) trade(kept, other, lane & 1);
                    if (base == kNone) continue;
                    amp_t* to = state + base + place + r * tiles.column;
                    to[__ldg(lane_offset + 2 * lane)] = kept;
                    to[__ldg(lane_offset + 2 * lane + 1)] = other;
                }
            }
        }
        if constexpr (kBuffers == 1) commit_copies();
        if constexpr (kBuffers == 2) __syncthreads();  // a tile to come overwrites what other warps may still read
        turn = next_turn;
        buffer ^= kBuffers - 1;
    }
}
