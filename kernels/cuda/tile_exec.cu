// tile_exec.cu -- runs a compiled list of gates inside tiles of 2^T amplitudes: one read and one write of the state.
// Arrays     state amp_t[2^n] in/out; program uint64 words as packed by cuda_program.py (layouts, operators, tables)
// Launch     2^(T-kRegisterQubits) threads a block, any grid (grid-stride over tiles), 2^T amplitudes of dynamic shared memory
// Work       32 B a complex128 amplitude, plus 2 FMA for a rotation, 4 for a table of phases, 16 for a 4x4 matrix
// Layout     a thread holds 4 (complex64: 5) qubits in registers; an exchange through swizzled shared memory brings others
// Exactness  X, CX and quarter-turn phases are exact; rotations leave out a common real factor, applied once at the store
// Source     registers and exchanges after HyQuas (ICS 2021), with one exchange per register phase instead of one per gate
#include "common.cuh"
#include "tile_gates.cuh"

// A thread's place in one layout: where its amplitudes lie in the state and in shared memory.
struct Place {
    index_t base;     // basis state of register index 0
    unsigned slot;    // byte offset in shared memory of register index 0, swizzled
    unsigned layout;  // word index of the layout record: kRegisterQubits strides and slot masks, then (offset, slot) per thread
};

__device__ __forceinline__ Place enter(const index_t* program, unsigned layout, index_t tile_base) {
    ulonglong2 own = __ldg(reinterpret_cast<const ulonglong2*>(program + layout + kThreadTable) + threadIdx.x);
    return {tile_base | own.x, (unsigned)own.y, layout};
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

struct Geometry {
    index_t num_tiles;
    index_t tile_mask;  // basis-state bits of the tile's qubits
    unsigned load_layout;
    unsigned first_op;
    double scale;  // product of the factors that rotations left out
    Runs runs;     // the tile's qubits as runs of consecutive positions
};

extern "C" __global__ void __launch_bounds__(kTileThreads, 2)
tile_exec(amp_t* __restrict__ state, const index_t* __restrict__ program, const __grid_constant__ Geometry geometry) {
    extern __shared__ __align__(16) char shared[];
    for (index_t tile = blockIdx.x; tile < geometry.num_tiles; tile += gridDim.x) {
        amp_t a[kAmps];
        Place place = enter(program, geometry.load_layout, spread(tile, geometry.runs));
        {
            const amp_t* from = state + place.base;
#pragma unroll
            for (int i = 0; i < kAmps; ++i) {
                a[gray(i)] = load_amp(from);
                if (i < kAmps - 1) from = hidden(from + gray_step(program + place.layout, i));
            }
        }

        for (const index_t* next = program + geometry.first_op;; next += 4) {
            const Op op = fetch(next);
            if (op.code == kEnd) break;
            if (op.code == kExchange) {
                // Slots written here were read only by this thread since the last barrier, so one barrier is enough.
                put(a, program, place, shared);
                __syncthreads();
                place = enter(program, (unsigned)op.w3, place.base & ~geometry.tile_mask);
                get(a, program, place, shared);
            } else if (op.code == kPermute) {
                put(a, program, place, shared);
                __syncthreads();
                permute(a, program, op, place.base, place.slot, place.layout, shared);
                __syncthreads();
            } else if (op.code == kMatrixAll) {
                put(a, program, place, shared);
                if ((place.base & op.w1) == op.w2) {
                    unsigned mask[kRegisterQubits];
                    slot_masks(program, place.layout, mask);
                    const amp_t* matrix = reinterpret_cast<const amp_t*>(program + op.w3);
#pragma unroll 1
                    for (int row = 0; row < kAmps; ++row) {
                        amp_t sum = {0, 0};
#pragma unroll
                        for (int r = 0; r < kAmps; ++r) cfma(sum, a[r], __ldg(matrix + row * kAmps + r));
                        *reinterpret_cast<amp_t*>(shared + slot_of(mask, place.slot, row)) = sum;
                    }
                }
                get(a, program, place, shared);
            } else {
                apply(a, program, op, place.base);
            }
        }

        const real_t scale = (real_t)geometry.scale;
        amp_t* to = state + place.base;
#pragma unroll
        for (int i = 0; i < kAmps; ++i) {
            const int r = gray(i);
            *to = {a[r].x * scale, a[r].y * scale};  // rounds once; exact where scale is a power of two
            if (i < kAmps - 1) to = hidden(to + gray_step(program + place.layout, i));
        }
        __syncthreads();  // the next tile's first exchange writes slots that others may still read
    }
}
