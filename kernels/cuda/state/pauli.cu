// state/pauli.cu -- expectation values of Pauli strings: those that flip the same qubits read the same products of amplitudes.
// pauli_values  partial[batch, s] = sum over the batch's chunks of (-1)^(bits of i in signs[s]) times the real or imaginary part of
//               conj(state[i ^ flips]) state[i]; of strings that flip a qubit above a chunk's, one of each pair of chunks, twice
// Arrays        state amp_t[2^n], n >= 12; groups Group[]; signs uint64[num_strings], those of a group one after the other;
//               partial double[num_batches, num_strings], 0 before
// Launch        num_batches blocks of 256 threads for each group, one group after the other; num_batches divides the chunks
// Work          a group reads the state once (flips of a chunk's own qubits: from the cache again): bound by memory; 12 additions an amplitude,
//               and per chunk 16 B a string
// Exactness     sums in double, in an order that depends on num_batches alone
// Source        sums with signs of all strings of a group at once are a Walsh-Hadamard transform: arXiv:quant-ph/0406176, section 3
#include "common/common.cuh"

constexpr int kChunkBits = 12, kThreads = 256, kOwn = 16;

struct Group {
    index_t flips;
    index_t first, count;  // of its strings
    int highest;           // qubit that is flipped, -1 where none is
    int imaginary;         // whether its strings read imaginary parts
};

__device__ __forceinline__ void transform16(double (&v)[kOwn]) {
#pragma unroll
    for (int bit = 1; bit < kOwn; bit <<= 1)
#pragma unroll
        for (int r = 0; r < kOwn; ++r)
            if (!(r & bit)) {
                const double a = v[r], b = v[r | bit];
                v[r] = a + b, v[r | bit] = a - b;
            }
}

// A place is free after every 16: threads that take 16 in a row reach other banks.
__device__ __forceinline__ unsigned padded(unsigned i) { return i + (i >> 4); }

// Four bits of the index are a thread's own: those from `low` on.
__device__ __forceinline__ unsigned index_of(int r, int low) {
    const unsigned below = threadIdx.x & ((1u << low) - 1);
    return (threadIdx.x - below) << 4 | r << low | below;
}

__device__ __forceinline__ void transform_shared(double* values, int low) {
    double v[kOwn];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kOwn; ++r) v[r] = values[padded(index_of(r, low))];
    transform16(v);
#pragma unroll
    for (int r = 0; r < kOwn; ++r) values[padded(index_of(r, low))] = v[r];
}

extern "C" __global__ void __launch_bounds__(kThreads)
pauli_values(const amp_t* __restrict__ state, const Group* __restrict__ groups, const index_t* __restrict__ signs, double* __restrict__ partial,
             index_t num_chunks, index_t num_batches, index_t num_strings) {
    __shared__ double values[(1 << kChunkBits) + (1 << kChunkBits - 4)];
    const Group group = groups[blockIdx.x / num_batches];
    const index_t batch = blockIdx.x % num_batches, share = num_chunks / num_batches;
    const bool pairs = group.highest >= kChunkBits;
    double* const sums = partial + batch * num_strings + group.first;
    const index_t* const own_signs = signs + group.first;
    for (index_t chunk = batch * share; chunk < (batch + 1) * share; ++chunk) {
        if (pairs && (chunk >> (group.highest - kChunkBits) & 1)) continue;
        double v[kOwn];
#pragma unroll
        for (int r = 0; r < kOwn; ++r) {
            const index_t i = chunk << kChunkBits | index_of(r, 8);
            const amp_t a = load_amp(state + (i ^ group.flips)), b = load_amp(state + i);
            const double ax = a.x, ay = a.y, bx = b.x, by = b.y;
            v[r] = group.imaginary ? ax * by - ay * bx : ax * bx + ay * by;
        }
        transform16(v);
        __syncthreads();  // others have read the chunk before's sums
#pragma unroll
        for (int r = 0; r < kOwn; ++r) values[padded(index_of(r, 8))] = v[r];
        transform_shared(values, 4);
        transform_shared(values, 0);
        __syncthreads();
        for (index_t s = threadIdx.x; s < group.count; s += kThreads) {
            const index_t sign = own_signs[s];
            const double sum = values[padded((unsigned)sign & ((1u << kChunkBits) - 1))];
            const double signed_sum = __popcll(sign >> kChunkBits & chunk) & 1 ? -sum : sum;
            sums[s] += pairs ? 2 * signed_sum : signed_sum;
        }
    }
}
