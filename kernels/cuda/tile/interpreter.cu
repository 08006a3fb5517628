// tile/interpreter.cu -- runs a compiled list of gates inside tiles of 2^T amplitudes: one read and one write of the state.
// Arrays     state amp_t[2^n] in/out; program uint64 words as packed by engines/cuda/interpreter.py (layouts, operators, tables)
// Launch     2^(T-kRegisterQubits) threads a block, at most num_tiles blocks (grid-stride over tiles), 2^T amplitudes of dynamic shared memory
// Work       32 B a complex128 amplitude, plus 2 FMA for a rotation, 4 for a table of phases, 16 for a 4x4 matrix
// Layout     a thread holds 4 (complex64: 5) qubits in registers; an exchange through swizzled shared memory brings others
// Exactness  X, CX and quarter-turn phases are exact; rotations leave out a common real factor, applied once at the store
// Source     registers and exchanges after HyQuas (ICS 2021), with one exchange per register phase instead of one per gate
#include "common/common.cuh"
#include "tile/dispatch.cuh"

// A thread's place in one layout: where its amplitudes lie in the state and in shared memory.
struct Place {
    index_t base;     // basis state of register index 0
    unsigned slot;    // byte offset in shared memory of register index 0, swizzled
    unsigned layout;  // word index of the layout record: kRegisterQubits strides and slot masks, then (offset, slot) per thread
};

__device__ __forceinline__ Place enter(const index_t* program, unsigned layout, index_t tile_base) {
    ulonglong2 entry = __ldg(reinterpret_cast<const ulonglong2*>(program + layout + kThreadTable) + threadIdx.x);
    return {tile_base | entry.x, (unsigned)entry.y, layout};
}

__device__ __forceinline__ unsigned slot_of(const unsigned (&mask)[kRegisterQubits], unsigned slot, int r) {
#pragma unroll
    for (int b = 0; b < kRegisterQubits; ++b)
        if ((r >> b) & 1) slot ^= mask[b];
    return slot;
}

__device__ __forceinline__ void slot_masks(const index_t* program, unsigned layout, unsigned (&mask)[kRegisterQubits]) {
#pragma unroll
    for (int b = 0; b < kRegisterQubits; ++b) {
        mask[b] = (unsigned)__ldg(program + layout + kRegisterQubits + b);
        mask[b] = hidden(mask[b]);  // else every slot's address is kept in a register from one exchange to the next
    }
}

__device__ __forceinline__ void put(amp_t (&a)[kAmps], const index_t* program, const Place& place, char* shared) {
    unsigned mask[kRegisterQubits];
    slot_masks(program, place.layout, mask);
#pragma unroll
    for (int r = 0; r < kAmps; ++r) *reinterpret_cast<amp_t*>(shared + slot_of(mask, place.slot, r)) = a[r];
}

__device__ __forceinline__ void get(amp_t (&a)[kAmps], const index_t* program, const Place& place, const char* shared) {
    unsigned mask[kRegisterQubits];
    slot_masks(program, place.layout, mask);
#pragma unroll
    for (int r = 0; r < kAmps; ++r) a[r] = *reinterpret_cast<const amp_t*>(shared + slot_of(mask, place.slot, r));
}

// y = U x on all register qubits: rows go to the thread's own slots, so no second register array is needed.
__device__ __forceinline__ void matrix_all(amp_t (&a)[kAmps], const index_t* program, const Op& op, const Place& place, char* shared) {
    put(a, program, place, shared);
    if (holds(program + op.at, place.base)) {
        unsigned mask[kRegisterQubits];
        slot_masks(program, place.layout, mask);
        const amp_t* matrix = reinterpret_cast<const amp_t*>(program + op.at + 2);
#pragma unroll 1
        for (int row = 0; row < kAmps; ++row) {
            amp_t sum = {0, 0};
#pragma unroll
            for (int r = 0; r < kAmps; ++r) cfma(sum, a[r], __ldg(matrix + row * kAmps + r));
            *reinterpret_cast<amp_t*>(shared + slot_of(mask, place.slot, row)) = sum;
        }
    }
    get(a, program, place, shared);
}

// Copies the thread's amplitudes of a tile from the state to its own slots, behind the arithmetic of the tile before.
// Amplitudes where a qubit of `fresh` reads 1 are 0, whatever memory holds.
__device__ __forceinline__ void fetch_tile(const amp_t* state, const index_t* program, const Place& place, index_t fresh, char* shared) {
    unsigned mask[kRegisterQubits];
    slot_masks(program, place.layout, mask);
    const amp_t* from = state + place.base;
#pragma unroll
    for (int i = 0; i < kAmps; ++i) {
        copy_async_unless(((index_t)(from - state) & fresh) != 0, shared_address(shared + slot_of(mask, place.slot, gray(i))), from);
        if (i < kAmps - 1) from = hidden(from + gray_step(program + place.layout, i));
    }
}

struct Geometry {
    index_t num_tiles;
    index_t tile_mask;  // basis-state bits of the tile's qubits
    index_t fresh;      // those of qubits of it that are |0>
    unsigned load_layout;
    unsigned first_op;
    double scale;  // product of the factors that rotations left out
    Runs runs;     // the tile's qubits as runs of consecutive positions
};

extern "C" __global__ void __launch_bounds__(kTileThreads, 2)
tile_exec(amp_t* __restrict__ state, const index_t* __restrict__ program, const __grid_constant__ Geometry geometry) {
    extern __shared__ __align__(16) char shared[];
    amp_t a[kAmps];
    Place place = enter(program, geometry.load_layout, spread(blockIdx.x, geometry.runs));
    fetch_tile(state, program, place, geometry.fresh, shared);
    for (index_t tile = blockIdx.x; tile < geometry.num_tiles; tile += gridDim.x) {
        wait_async();
        get(a, program, place, shared);  // each thread reads what it copied itself: no barrier

        const index_t* next = program + geometry.first_op;
        for (Op op = fetch(next); code_of(op) != kEnd;) {
            ++next;
            const Op following = fetch(next);
            switch (code_of(op)) {
                case kExchange:
                    // Slots written here were read only by this thread since the last barrier, so one barrier is enough.
                    put(a, program, place, shared);
                    __syncthreads();
                    place = enter(program, op.at, place.base & ~geometry.tile_mask);
                    get(a, program, place, shared);
                    break;
                case kPrefetch:
                    __syncthreads();  // others may still read what the last exchange brought
                    if (tile + gridDim.x < geometry.num_tiles) {
                        const Place first = enter(program, geometry.load_layout, spread(tile + gridDim.x, geometry.runs));
                        fetch_tile(state, program, first, geometry.fresh, shared);
                    }
                    break;
                case kPermute:
                    put(a, program, place, shared);
                    __syncthreads();
                    permute(a, program, op, place.base, place.slot, place.layout, shared);
                    __syncthreads();
                    break;
                case kMatrixAll:
                    matrix_all(a, program, op, place, shared);
                    break;
                default:
                    apply(a, program, op, place.base);
            }
            op = following;
        }

        const real_t scale = (real_t)geometry.scale;
        amp_t* to = state + place.base;
#pragma unroll
        for (int i = 0; i < kAmps; ++i) {
            const int r = gray(i);
            *to = {a[r].x * scale, a[r].y * scale};  // rounds once; exact where scale is a power of two
            if (i < kAmps - 1) to = hidden(to + gray_step(program + place.layout, i));
        }
        place = enter(program, geometry.load_layout, spread(tile + gridDim.x, geometry.runs));
    }
}
