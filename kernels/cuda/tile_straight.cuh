// tile_straight.cuh -- the frame of a generated tile kernel: loads, exchanges, stores and operators with compile-time places.
// A generated source (cuda_source.py) defines the macros, includes this file and spells out one pass in a struct Body.
// Macros     QSIM_TILE tile qubits; QSIM_CONSTANTS, QSIM_MASKS sizes of the arguments; QSIM_PHASES bytes of phases of two tiles' numbers;
//            QSIM_TABLES bytes of tables that outer bits choose from; QSIM_ROOM bytes of shared memory; QSIM_BLOCKS blocks that share
//            a processor; QSIM_FRESH whether some of the tile's qubits are |0>
// Body       In, First layouts of the load and of the first phase; kOffsetIn, kOffsetOut, kRecords, kTables word indices in the tables; kTilePhases;
//            kScaled; run(a, tile, args), which returns the thread's offset at the store
// Arrays     state amp_t[2^n] in/out; tables uint64 words: offsets per thread, matrices, phases per thread, records of tile phases;
//            tickets uint64[1], 0 at the launch
// Launch     2^(QSIM_TILE - kRegisterQubits) threads, at most num_tiles blocks; a tile of shared memory, kEarly amplitudes a thread, phases, tables
// Layout     as in tile_exec.cu; angles, matrix entries and qubit positions are arguments, so one kernel serves every pass of its structure
#pragma once
#include "tile_places.cuh"

constexpr int kThreads = 1 << (QSIM_TILE - kRegisterQubits);
constexpr unsigned kTileBytes = sizeof(amp_t) << QSIM_TILE;
constexpr unsigned kColumnBytes = sizeof(amp_t) * kThreads;  // one amplitude of each thread
static_assert(QSIM_ROOM >= kTileBytes + QSIM_PHASES + QSIM_TABLES, "a tile, its phases and tables must fit shared memory");
// A thread fetches so many amplitudes of the next tile as soon as all have taken theirs; the others follow after the last exchange.
constexpr int kFitting = (QSIM_ROOM - kTileBytes - QSIM_PHASES - QSIM_TABLES) / kColumnBytes;
constexpr int kEarly = kFitting < kAmps ? kFitting : kAmps;
constexpr unsigned kLowSlots = ((1u << kLineQubits) - 1) * sizeof(amp_t);  // slot bits that the swizzle changes

struct Args {
    index_t num_tiles;
    index_t stride_in[kRegisterQubits];   // of the register qubits at the load and at the store
    index_t stride_out[kRegisterQubits];
    index_t mask[QSIM_MASKS];
    index_t fresh;  // qubits of the tile that are |0>: amplitudes where one reads 1 are 0, whatever memory holds
    double scale;   // product of the factors that rotations left out
    Runs runs;     // the tile's qubits as runs of consecutive positions
    real_t value[QSIM_CONSTANTS];  // operands straight from constant memory: through shared memory they cost its bandwidth
};

// Slots that the register bits add by exclusive or in one layout; what derives from it has of_thread(number), the thread's own slot.
template <unsigned... kMask>
struct Layout {
    __device__ static constexpr unsigned of(int r) {
        const unsigned mask[] = {kMask...};
        unsigned slot = 0;
        for (int b = 0; b < kRegisterQubits; ++b)
            if ((r >> b) & 1) slot ^= mask[b];
        return slot;
    }
};

// Opaque: else all layouts' slots are computed ahead and held, and the amplitudes are short of registers.
template <class L>
__device__ __forceinline__ unsigned slot_of_thread() {
    unsigned thread = threadIdx.x;
    asm volatile("" : "+r"(thread));
    return L::of_thread(thread);
}

// Only the low part of a slot mixes with the thread's own; the high part is an immediate offset.
template <class L>
__device__ __forceinline__ unsigned slot_at(unsigned slot, int r) {
    return (slot ^ (L::of(r) & kLowSlots)) + (L::of(r) & ~kLowSlots);
}

template <class L>
__device__ __forceinline__ void put(const Amps& a, char* shared, unsigned slot) {
#pragma unroll
    for (int r = 0; r < kAmps; ++r) *reinterpret_cast<amp_t*>(shared + slot_at<L>(slot, r)) = a[r];
}

template <class L>
__device__ __forceinline__ void get(Amps& a, const char* shared, unsigned slot) {
#pragma unroll
    for (int r = 0; r < kAmps; ++r) a[r] = *reinterpret_cast<const amp_t*>(shared + slot_at<L>(slot, r));
}

// Gray order as in tile_gates.cuh, with strides from the arguments.
__device__ __forceinline__ long long step(const index_t (&strides)[kRegisterQubits], int i) {
    const int changed = gray(i) ^ gray(i + 1), bit = changed == 1 ? 0 : changed == 2 ? 1 : changed == 4 ? 2 : changed == 8 ? 3 : 4;
    const long long stride = (long long)strides[bit];
    return gray(i + 1) & changed ? stride : -stride;
}

// One tile of a block's sequence. What the kernel got is here too, so that a body has one argument.
struct Tile {
    const volatile index_t* next;  // the number of the one after it, in shared memory: read where it is needed, not held
    index_t base;                  // basis state of its first amplitude
    const amp_t* state;
    const index_t* tables;
    char* shared;
    const amp_t* phases;  // of its number
    const char* chosen;   // tables that outer bits choose from
};

// Volatile: loaded where it is written, not held.
__device__ __forceinline__ index_t offset_of_thread(const index_t* tables, unsigned at) {
    index_t v;
    const index_t* p = tables + at + threadIdx.x;
    asm volatile("ld.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

// The tile's highest qubits number a thread's registers at the load: a slot's high part is the number of the fetch. Of the next tile
// early ones wait behind the tile, others in their own slots.
__device__ __forceinline__ unsigned waiting_place(unsigned slot) { return slot + (slot < kEarly * kColumnBytes ? kTileBytes : 0u); }

enum class Part { kAll, kEarly, kRest };

// Copies amplitudes of a tile to where they wait, behind the arithmetic of the tile before.
template <class Body, Part kPart>
__device__ __forceinline__ void fetch(const amp_t* state, index_t offset, char* shared, index_t number, const Args& args) {
    if (number >= args.num_tiles) return;
    const amp_t* from = state + (spread(number, args.runs) | offset);
    const unsigned slot = slot_of_thread<typename Body::In>();
#pragma unroll
    for (int i = 0; i < kAmps; ++i) {
        const int r = gray(i);
        if (kPart == Part::kAll || (r < kEarly) == (kPart == Part::kEarly)) {
            char* to = shared + slot_at<typename Body::In>(slot, r) + (r < kEarly ? kTileBytes : 0u);
            if constexpr (QSIM_FRESH) copy_async_unless(((index_t)(from - state) & args.fresh) != 0, to, from);
            else copy_async(to, from);
        }
        if (i < kAmps - 1) from += step(args.stride_in, i);
    }
}

template <class L>
__device__ __forceinline__ void take(Amps& a, const char* shared, unsigned slot) {
#pragma unroll
    for (int r = 0; r < kAmps; ++r) a[r] = *reinterpret_cast<const amp_t*>(shared + waiting_place(slot_at<L>(slot, r)));
}

template <class Body>
__device__ __forceinline__ void fetch_rest(const Tile& tile, const Args& args) {
    if constexpr (kEarly < kAmps)
        fetch<Body, Part::kRest>(tile.state, offset_of_thread(tile.tables, Body::kOffsetIn), tile.shared, *tile.next, args);
}

// Brings other qubits into registers. Slots written here were read only by this thread since the last barrier: one is enough.
// Where the same qubits number the warps before and after, a warp waits for no other.
template <class From, class To, bool kWithinWarps>
__device__ __forceinline__ void exchange(Amps& a, const Tile& tile) {
    put<From>(a, tile.shared, slot_of_thread<From>());
    const unsigned to = slot_of_thread<To>();
    if constexpr (kWithinWarps) __syncwarp();
    else __syncthreads();
    get<To>(a, tile.shared, to);
}

template <bool kScaled>
__device__ __forceinline__ void store(const Amps& a, amp_t* to, const Args& args) {
    const real_t scale = (real_t)args.scale;
#pragma unroll
    for (int i = 0; i < kAmps; ++i) {
        const int r = gray(i);
        *to = kScaled ? amp_t{a[r].x * scale, a[r].y * scale} : a[r];  // rounds once; exact where scale is a power of two
        if (i < kAmps - 1) to += step(args.stride_out, i);
    }
}

__device__ __forceinline__ amp_t phase_of_thread(const index_t* tables, unsigned at) {
    return __ldg(reinterpret_cast<const amp_t*>(tables + at) + threadIdx.x);
}

// Times a constant that depends on the register bits of kSupport and on outer bits, of which there are kChoices sets of values.
template <unsigned kOn, unsigned kSupport, int kChoices>
__device__ __forceinline__ void times_chosen(Amps& a, const char* tables, unsigned at, unsigned choice) {
    const amp_t* c = reinterpret_cast<const amp_t*>(tables + at) + choice;
#pragma unroll
    for (int r = 0; r < kAmps; ++r)
        if ((kOn >> r) & 1) a[r] = cmul(a[r], c[packed<kSupport>(r) * kChoices]);
}

// Phase number i of the tile's own bits: records are words (number of terms, word index of constant, 0, terms).
__device__ __forceinline__ amp_t phase_of_tile(const index_t* tables, unsigned records, index_t base) {
    const index_t word = __ldg(tables + records + threadIdx.x);
    return unit(total_angle(tables, Op{(unsigned)word << 13, (unsigned)(word >> 32)}, base));
}

// A phase of the thread's and the tile's bits that is no product of both.
__device__ __forceinline__ amp_t phase_of_both(const index_t* tables, unsigned terms, unsigned at, index_t base, unsigned offsets) {
    return unit(total_angle(tables, Op{terms << 13, at}, base | __ldg(tables + offsets + threadIdx.x)));
}

template <class Body>
__device__ __forceinline__ void run_tiles(amp_t* __restrict__ state, const index_t* __restrict__ tables, index_t* __restrict__ tickets,
                                          const Args& args) {
    extern __shared__ __align__(16) char shared[];
    amp_t* phases = reinterpret_cast<amp_t*>(shared + kTileBytes + kEarly * kColumnBytes);
    char* chosen = reinterpret_cast<char*>(phases) + QSIM_PHASES;
    for (unsigned i = threadIdx.x; i < QSIM_TABLES / 16; i += kThreads)
        reinterpret_cast<ulonglong2*>(chosen)[i] = __ldg(reinterpret_cast<const ulonglong2*>(tables + Body::kTables) + i);
    Amps a;
    // Tiles are handed out in order: blocks that drifted apart would spread their accesses over more pages of memory.
    __shared__ index_t handed[2];
    if (threadIdx.x == 0) handed[0] = gridDim.x + atomicAdd(tickets, 1ull);
    index_t number = blockIdx.x;
    fetch<Body, Part::kAll>(state, offset_of_thread(tables, Body::kOffsetIn), shared, number, args);
    for (unsigned turn = 0; number < args.num_tiles; turn ^= 1) {
        const index_t base = spread(number, args.runs), offset = offset_of_thread(tables, Body::kOffsetIn);
        if constexpr (Body::kTilePhases > 0) {  // while memory answers; two sets in turn: others may still read the tile before's
            if (threadIdx.x < Body::kTilePhases)
                phases[turn * Body::kTilePhases + threadIdx.x] = phase_of_tile(tables, Body::kRecords, base);
        }
        wait_async();
        __syncthreads();  // for what others copied, the phases and the next number
        take<typename Body::First>(a, shared, slot_of_thread<typename Body::First>());
        __syncthreads();  // all have taken their amplitudes
        unsigned ticket;  // the answer takes longer than anything else here: it is waited for at the end
        if (threadIdx.x == 0) ticket = (unsigned)atomicAdd(tickets, 1ull);
        fetch<Body, Part::kEarly>(state, offset, shared, handed[turn], args);
        const Tile tile = {handed + turn, base, state, tables, shared, phases + turn * Body::kTilePhases, chosen};
        const index_t to = Body::run(a, tile, args);
        store<Body::kScaled>(a, state + (base | to), args);
        number = *tile.next;  // the slot is written again only once all have come to the next barrier
        if (threadIdx.x == 0) handed[turn ^ 1] = gridDim.x + (index_t)ticket;
    }
}

#define QSIM_KERNEL                                                                                        \
    extern "C" __global__ void __launch_bounds__(kThreads, QSIM_BLOCKS)                                    \
    tile_straight(amp_t* __restrict__ state, const index_t* __restrict__ tables, index_t* __restrict__ tickets, \
                  const __grid_constant__ Args args) {                                                     \
        run_tiles<Body>(state, tables, tickets, args);                                                     \
    }
