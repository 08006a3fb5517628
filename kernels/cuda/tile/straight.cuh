// tile/straight.cuh -- the frame of a generated tile kernel: loads, exchanges, stores and operators with compile-time places.
// A generated source (engines/cuda/codegen/source.py) defines the macros, includes this file and spells out one pass in a struct Body.
// Macros     QSIM_TILE tile qubits; QSIM_CONSTANTS, QSIM_MASKS sizes of the arguments; QSIM_PHASES bytes of phases of two tiles' numbers;
//            QSIM_TABLES bytes of tables that outer bits choose from; QSIM_ROOM bytes of shared memory; QSIM_BLOCKS blocks that share
//            a processor; QSIM_FRESH_REGISTERS, QSIM_FRESH_THREADS bits of register and thread numbers at the load whose qubits are |0>
// Body       In, First layouts of the load and of the first phase; kOffsetIn, kOffsetOut, kRecords, kTables word indices in the tables; kTilePhases;
//            kScaled; run(a, tile, args), which returns the thread's offset at the store
// Arrays     state amp_t[2^n] in/out; tables uint64 words: offsets per thread, matrices, phases per thread, records of tile phases;
//            tickets uint64[1], 0 at the launch
// Launch     2^(QSIM_TILE - kRegisterQubits) threads, at most num_tiles blocks; a tile of shared memory, kEarly amplitudes a thread, phases, tables
// Layout     as in interpreter.cu; angles, matrix entries and qubit positions are arguments, so one kernel serves every pass of its structure
#pragma once
#include "common/volatile_access.cuh"
#include "tile/places.cuh"

constexpr int kThreads = 1 << (QSIM_TILE - kRegisterQubits);
// Where an amplitude of the tile is in shared memory, its slot: complex128 mixes high bits into the low ones, complex64 leaves an amplitude
// free after every line, line of lines and so on. Lanes that differ in bits of different residues modulo a line's meet no conflict in both;
// padding takes memory, and no instruction where register bits are known. As engines/cuda/device/shapes.py, GENERATED, has it.
constexpr bool kPadded = !kIsDouble;
__device__ constexpr unsigned padded(unsigned bytes) {
    constexpr unsigned kWhole = ~(unsigned)(sizeof(amp_t) - 1);
    return bytes + (bytes >> kLineQubits & kWhole) + (bytes >> 2 * kLineQubits & kWhole) + (bytes >> 3 * kLineQubits & kWhole);
}
constexpr unsigned kPlainColumn = sizeof(amp_t) * kThreads;  // bytes of one amplitude of each thread, alone and with what is left free
constexpr unsigned kColumnBytes = kPadded ? (padded(kPlainColumn) + sizeof(amp_t) + 15) & ~15u : kPlainColumn;
constexpr unsigned kTileBytes = kColumnBytes * kAmps;
static_assert(QSIM_ROOM >= kTileBytes + QSIM_PHASES + QSIM_TABLES, "a tile, its phases and tables must fit shared memory");
// A thread fetches so many amplitudes of the next tile as soon as all have taken theirs; the others follow after the last exchange.
constexpr int kFitting = (QSIM_ROOM - kTileBytes - QSIM_PHASES - QSIM_TABLES) / kColumnBytes;
constexpr int kEarly = kFitting < kAmps ? kFitting : kAmps;
constexpr unsigned kLowSlots = ((1u << kLineQubits) - 1) * sizeof(amp_t);  // slot bits that the swizzle changes

struct Args {
    index_t num_tiles;
    index_t stride_in[kRegisterQubits];   // bytes, of the register qubits at the load and at the store
    index_t stride_out[kRegisterQubits];
    index_t mask[QSIM_MASKS];
    double scale;   // product of the factors that rotations left out
    Runs runs;     // the tile's qubits as runs of consecutive positions
    real_t value[QSIM_CONSTANTS];  // operands straight from constant memory: through shared memory they cost its bandwidth
};

// Bytes that the register bits add in one layout, by exclusive or; what derives from it has of_thread(number), the thread's own. Of a padded
// tile they are plain, and become slots by `padded`; else they are slots.
template <unsigned... kMask>
struct Layout {
    __device__ static constexpr unsigned of(int r) {
        const unsigned mask[] = {kMask...};
        unsigned bytes = 0;
        for (int b = 0; b < kRegisterQubits; ++b)
            if ((r >> b) & 1) bytes ^= mask[b];
        return bytes;
    }
};

// Opaque: else what derives from it, all layouts' slots first, is computed ahead and held, and the amplitudes are short of registers.
__device__ __forceinline__ unsigned own_thread() {
    unsigned thread = threadIdx.x;
    asm volatile("" : "+r"(thread));
    return thread;
}
__device__ __forceinline__ unsigned as_slot(unsigned bytes) { return kPadded ? padded(bytes) : bytes; }
template <class L>
__device__ __forceinline__ unsigned slot_of_thread() {
    return as_slot(L::of_thread(own_thread()));
}

// Only the low part of a slot mixes with the thread's own; all else is an immediate offset.
template <class L>
__device__ __forceinline__ unsigned slot_at(unsigned slot, int r) {
    if (kPadded) return slot + padded(L::of(r));
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

// Register numbers of amplitudes that memory holds, in Gray order: where the qubit of a bit is |0> and it reads 1 there is nothing.
__device__ constexpr int held(int i) {
    int out = 0, at = 0;
    for (int b = 0; b < kRegisterQubits; ++b)
        if (!((QSIM_FRESH_REGISTERS >> b) & 1)) out |= ((gray(i) >> at++) & 1) << b;
    return out;
}
__device__ constexpr int count_held() {
    int count = kAmps;
    for (int b = 0; b < kRegisterQubits; ++b) count >>= (QSIM_FRESH_REGISTERS >> b) & 1;
    return count;
}

// A pointer's way from register number r to another, one bit away; in bytes, else every address is an index scaled.
template <class T>
__device__ __forceinline__ T* moved(T* p, const index_t (&strides)[kRegisterQubits], int r, int other) {
    const int changed = r ^ other, bit = changed == 1 ? 0 : changed == 2 ? 1 : changed == 4 ? 2 : changed == 8 ? 3 : 4;
    const index_t at = reinterpret_cast<index_t>(p);
    return reinterpret_cast<T*>(other & changed ? at + strides[bit] : at - strides[bit]);
}

constexpr unsigned kBases = 4;  // of a tile, those two that follow, and one that nobody uses

// One tile of a block's sequence. What the kernel got is here too, so that a body has one argument.
struct Tile {
    const volatile index_t* bases;  // in shared memory: read where they are needed, not held
    unsigned number;                // of the tile in the block's sequence
    const amp_t* state;
    const index_t* tables;
    char* shared;
    amp_t* phases;        // of its number
    const char* chosen;   // tables that outer bits choose from

    // Basis state of its first amplitude, and of the tile's after it.
    __device__ __forceinline__ index_t base() const { return bases[number % kBases]; }
    __device__ __forceinline__ index_t next() const { return bases[(number + 1) % kBases]; }
};

__device__ __forceinline__ index_t offset_of_thread(const index_t* tables, unsigned at) { return load_volatile(tables + at + own_thread()); }

constexpr index_t kNone = ~0ull;  // in place of a base: no such tile

// One thread finds a tile's base for all: bits of its number go to the places that the tile leaves.
__device__ __forceinline__ index_t base_of(index_t number, const Args& args) {
    return number < args.num_tiles ? spread(number, args.runs) : kNone;
}

enum class Part { kAll, kEarly, kRest };
template <Part kPart>
__device__ constexpr bool fetched(int r) {
    return kPart == Part::kAll || (r < kEarly) == (kPart == Part::kEarly);
}
template <class L>
__device__ __forceinline__ unsigned waiting_at(unsigned slot, int r) {
    return slot_at<L>(slot, r) + (r < kEarly ? kTileBytes : 0u);
}

// Copies amplitudes of a tile to where they wait, behind the arithmetic of the tile before. The tile's highest qubits number a thread's
// registers here, as high parts of slots: early ones of the next tile wait behind the tile, others in their own slots.
template <class Body, Part kPart>
__device__ __forceinline__ void fetch(const amp_t* state, index_t offset, char* shared, index_t base, const Args& args) {
    if (base == kNone) return;
    const amp_t* from = state + (base | offset);
    using In = typename Body::In;
    // Added up before slots mix: the low bits of a line's address are 0.
    const unsigned to = shared_address(shared) + slot_of_thread<In>();
    const bool nothing = (threadIdx.x & QSIM_FRESH_THREADS) != 0;
#pragma unroll
    for (int i = 0; i < count_held(); ++i) {
        const int r = held(i);
        if (fetched<kPart>(r)) {
            const unsigned at = waiting_at<In>(to, r);
            if constexpr (QSIM_FRESH_THREADS) copy_async_unless(nothing, at, from);
            else copy_async(at, from);
        }
        if (i < count_held() - 1) from = moved(from, args.stride_in, r, held(i + 1));
    }
#pragma unroll
    for (int r = 0; r < kAmps; ++r)
        if ((r & QSIM_FRESH_REGISTERS) && fetched<kPart>(r))
            *reinterpret_cast<amp_t*>(shared + waiting_at<In>(slot_of_thread<In>(), r)) = amp_t{};
}

// The high part of an amplitude's bytes is the number of the fetch that brought it.
template <class L>
__device__ __forceinline__ void take(Amps& a, const char* shared) {
    constexpr unsigned kHigh = ~(kPlainColumn - 1);
    const unsigned bytes = L::of_thread(own_thread()), slot = as_slot(bytes);
#pragma unroll
    for (int r = 0; r < kAmps; ++r) {
        const unsigned waiting = slot + ((bytes & kHigh) + (L::of(r) & kHigh) < kEarly * kPlainColumn ? kTileBytes : 0u);
        a[r] = *reinterpret_cast<const amp_t*>(shared + slot_at<L>(waiting, r));
    }
}

template <class Body>
__device__ __forceinline__ void fetch_rest(const Tile& tile, const Args& args) {
    if constexpr (kEarly < kAmps)
        fetch<Body, Part::kRest>(tile.state, offset_of_thread(tile.tables, Body::kOffsetIn), tile.shared, tile.next(), args);
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
        store_volatile(to, kScaled ? amp_t{a[r].x * scale, a[r].y * scale} : a[r]);  // rounds once; exact where scale is a power of two
        if (i < kAmps - 1) to = moved(to, args.stride_out, r, gray(i + 1));
    }
}

__device__ __forceinline__ amp_t phase_of_thread(const index_t* tables, unsigned at) {
    return load_volatile(reinterpret_cast<const amp_t*>(tables + at) + own_thread());
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
    extern __shared__ __align__(128) char shared[];
    amp_t* phases = reinterpret_cast<amp_t*>(shared + kTileBytes + kEarly * kColumnBytes);
    char* chosen = reinterpret_cast<char*>(phases) + QSIM_PHASES;
    for (unsigned i = threadIdx.x; i < QSIM_TABLES / 16; i += kThreads)
        reinterpret_cast<ulonglong2*>(chosen)[i] = __ldg(reinterpret_cast<const ulonglong2*>(tables + Body::kTables) + i);
    Amps a;
    // Tiles are handed out in order: blocks that drifted apart would spread their accesses over more pages of memory.
    __shared__ index_t bases[kBases];
    const index_t first = base_of(blockIdx.x, args);
    if (threadIdx.x == 0) {
        bases[0] = first;
        bases[1] = base_of(gridDim.x + atomicAdd(tickets, 1ull), args);
    }
    fetch<Body, Part::kAll>(state, offset_of_thread(tables, Body::kOffsetIn), shared, first, args);
    __syncthreads();  // for the bases
    for (unsigned number = 0;; ++number) {
        const Tile tile = {bases, number, state, tables, shared, phases + number % 2 * Body::kTilePhases, chosen};
        if (tile.base() == kNone) return;
        if constexpr (Body::kTilePhases > 0) {  // while memory answers; two sets in turn: others may still read the tile before's
            if (threadIdx.x < Body::kTilePhases)
                tile.phases[threadIdx.x] = phase_of_tile(tables, Body::kRecords, tile.base());
        }
        wait_async();
        __syncthreads();  // for what others copied, the phases and the next base
        take<typename Body::First>(a, shared);
        __syncthreads();  // all have taken their amplitudes
        // The answer waits where it needs no register: only one warp is late for it.
        if (threadIdx.x == 0) bases[(number + 2) % kBases] = gridDim.x + atomicAdd(tickets, 1ull);
        fetch<Body, Part::kEarly>(state, offset_of_thread(tables, Body::kOffsetIn), shared, tile.next(), args);
        const index_t to = Body::run(a, tile, args);
        store<Body::kScaled>(a, state + (tile.base() | to), args);
        if (threadIdx.x == 0) bases[(number + 2) % kBases] = base_of(bases[(number + 2) % kBases], args);
    }
}

#define QSIM_KERNEL                                                                                        \
    extern "C" __global__ void __launch_bounds__(kThreads, QSIM_BLOCKS)                                    \
    tile_straight(amp_t* __restrict__ state, const index_t* __restrict__ tables, index_t* __restrict__ tickets, \
                  const __grid_constant__ Args args) {                                                     \
        run_tiles<Body>(state, tables, tickets, args);                                                     \
    }
