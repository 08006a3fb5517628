// state/stack.cu -- small states of many rows in one launch: a block holds the states of a few rows of one program.
// stack_run    each row's amplitudes = the operators of its program in order on |0...0>
// Arrays       blocks, one per block of the grid; steps of all programs; data, their own numbers; sources, the column that a
//              permutation takes to each row; values, the numbers of the rows' slots; out, the rows' amplitudes
// Launch       blocks of 256 threads; shared memory for two copies of a block's amplitudes
// Work         2^k products per amplitude and operator on k targets, all in shared memory
// Exactness    one sum per amplitude in the order of the columns; the same bits whichever rows are beside it
#include "common/common.cuh"

constexpr unsigned kStackThreads = 256;
constexpr unsigned kDiagonal = 0, kPermutation = 2;  // of a step; 1 is a matrix

struct StackStep {
    unsigned kind, num_targets;
    unsigned control_mask, control_value;  // bits of an amplitude's index
    unsigned target_mask;
    unsigned from_row;         // 1: its numbers are the row's, else the program's
    index_t data;              // first of its numbers
    index_t source;            // kPermutation: first of its entries of `sources`
    unsigned char target[16];  // target[b] is bit b of the matrix index
};

struct StackBlock {
    index_t values, out;  // first number and amplitude of its first row
    unsigned width;       // numbers of a row
    unsigned num_rows, num_qubits, first_step, num_steps, unused;
};

// Bit b of `value` at the step's target b.
__device__ __forceinline__ unsigned placed(unsigned value, const StackStep* step) {
    unsigned out = 0;
    for (unsigned b = 0; b < step->num_targets; ++b) out |= ((value >> b) & 1) << step->target[b];
    return out;
}

// Amplitude i of a state after the step.
__device__ __forceinline__ amp_t after(const StackStep* step, const amp_t* numbers, const unsigned* sources, const amp_t* state,
                                       unsigned i) {
    if ((i & step->control_mask) != step->control_value) return state[i];
    unsigned row = 0;
    for (unsigned b = 0; b < step->num_targets; ++b) row |= ((i >> step->target[b]) & 1) << b;
    if (step->kind == kDiagonal) return cmul(state[i], numbers[row]);
    const unsigned rest = i & ~step->target_mask;
    if (step->kind == kPermutation) {
        const unsigned column = sources[step->source + row];
        return cmul(state[rest | placed(column, step)], numbers[column]);
    }
    amp_t sum;
    sum.x = 0, sum.y = 0;
    for (unsigned column = 0; column < 1u << step->num_targets; ++column)
        cfma(sum, state[rest | placed(column, step)], numbers[(row << step->num_targets) + column]);
    return sum;
}

extern "C" __global__ void __launch_bounds__(kStackThreads, 4)
stack_run(const StackBlock* __restrict__ blocks, const StackStep* __restrict__ steps, const amp_t* __restrict__ data,
          const unsigned* __restrict__ sources, const amp_t* __restrict__ values, amp_t* __restrict__ out) {
    extern __shared__ __align__(16) char shared[];
    const StackBlock* block = blocks + blockIdx.x;
    const unsigned bits = block->num_qubits, size = 1u << bits, total = block->num_rows << bits;
    amp_t *now = reinterpret_cast<amp_t*>(shared), *next = now + total;
    for (unsigned t = threadIdx.x; t < total; t += kStackThreads) now[t].x = (t & (size - 1)) == 0, now[t].y = 0;
    __syncthreads();
    for (unsigned s = 0; s < block->num_steps; ++s) {
        const StackStep* step = steps + (block->first_step + s);
        for (unsigned t = threadIdx.x; t < total; t += kStackThreads) {
            const amp_t* row = values + (block->values + (index_t)(t >> bits) * block->width);
            next[t] = after(step, (step->from_row ? row : data) + step->data, sources, now + (t & ~(size - 1)), t & (size - 1));
        }
        __syncthreads();
        amp_t* done = next;
        next = now, now = done;
    }
    for (unsigned t = threadIdx.x; t < total; t += kStackThreads) out[block->out + t] = now[t];
}
