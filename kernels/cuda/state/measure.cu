// state/measure.cu -- marginal probabilities, samples and collapse of a state.
// marginal     partial[chunk, outcome] = sum of |state[i]|^2 over the chunk's basis states i that read `outcome` at the measured qubits
// find_sample  out[s] = first basis state at which the cumulative probability passes uniforms[s] * total
// collapse     state[i] = (i & mask) == wanted ? scale * state[i] : 0
// Arrays       state amp_t[2^n]; partial double, outcome bits ascending by qubit; cumulative double[2^n / 2^chunk_bits], inclusive
// Launch       1-D grids of whole warps, grid-stride: any grid is correct; sums do not depend on the grid
// Work         16 B a complex128 amplitude read once (find_sample: one chunk per sample): bound by memory
// Exactness    sums in double, in a fixed order: the same bits on every run
#include "common/common.cuh"

struct Marginal {
    index_t first_high;   // measured qubits above the lanes: values first_high .. first_high + num_high - 1
    index_t num_high;
    index_t num_chunks;   // the other qubits above the lanes are split into this many chunks
    index_t chunk_size;
    unsigned lane_mask;   // lane bits that are measured
    unsigned lane_count;  // how many they are
    Runs runs;            // measured qubits above the lanes
};

// Bits of `value` into the qubits of the runs, ascending: the complement of spread().
__device__ __forceinline__ index_t deposit(index_t value, const Runs& runs) {
    index_t out = 0;
    for (unsigned i = 0; i < runs.count; ++i) {
        out |= (value & ((1ull << runs.length[i]) - 1)) << runs.start[i];
        value >>= runs.length[i];
    }
    return out;
}

extern "C" __global__ void __launch_bounds__(256)
marginal(const amp_t* __restrict__ state, double* __restrict__ partial, const __grid_constant__ Marginal m) {
    const unsigned lane = threadIdx.x & 31;
    const index_t warps = (index_t)gridDim.x * (blockDim.x >> 5);
    for (index_t w = (index_t)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); w < m.num_high * m.num_chunks; w += warps) {
        const index_t high = w / m.num_chunks, chunk = w % m.num_chunks;
        const index_t fixed = deposit(m.first_high + high, m.runs);
        double sum = 0;
#pragma unroll 4
        for (index_t i = chunk * m.chunk_size; i < (chunk + 1) * m.chunk_size; ++i)
            sum += norm2(load_amp(state + (fixed | spread(i << 5 | lane, m.runs))));
        for (unsigned b = 0; b < 5; ++b)
            if (!((m.lane_mask >> b) & 1)) sum += __shfl_xor_sync(0xffffffffu, sum, 1 << b);
        if ((lane & ~m.lane_mask) == 0) {
            unsigned outcome = 0, place = 0;
            for (unsigned b = 0; b < 5; ++b)
                if ((m.lane_mask >> b) & 1) outcome |= ((lane >> b) & 1) << place++;
            partial[((chunk * m.num_high + high) << m.lane_count) + outcome] = sum;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
find_sample(const amp_t* __restrict__ state, const double* __restrict__ cumulative, const double* __restrict__ uniforms,
            long long* __restrict__ out, index_t num_samples, index_t num_chunks, int chunk_bits) {
    const unsigned lane = threadIdx.x & 31;
    const index_t warps = (index_t)gridDim.x * (blockDim.x >> 5);
    const double total = cumulative[num_chunks - 1];
    for (index_t s = (index_t)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); s < num_samples; s += warps) {
        const double target = uniforms[s] * total;
        index_t low = 0, high = num_chunks;  // first chunk whose cumulative probability exceeds the target
        while (low < high) {
            const index_t middle = (low + high) / 2;
            if (cumulative[middle] > target) high = middle;
            else low = middle + 1;
        }
        if (low == num_chunks) {  // a uniform that rounds to 1: the chunk that reached the total
            high = num_chunks - 1;
            for (low = 0; low < high;) {
                const index_t middle = (low + high) / 2;
                if (cumulative[middle] >= total) high = middle;
                else low = middle + 1;
            }
        }
        double before = low ? cumulative[low - 1] : 0.0;
        const index_t first = low << chunk_bits;
        long long sample = -1, last_nonzero = (long long)first;
        for (index_t i = 0; i < 1ull << chunk_bits && sample < 0; i += 32) {
            const double probability = norm2(state[first + i + lane]);
            double sum = probability;
            for (int d = 1; d < 32; d <<= 1) {
                const double other = __shfl_up_sync(0xffffffffu, sum, d);
                if (lane >= d) sum += other;
            }
            const unsigned passed = __ballot_sync(0xffffffffu, before + sum > target && probability > 0);
            const unsigned nonzero = __ballot_sync(0xffffffffu, probability > 0);
            if (passed) sample = (long long)(first + i + __ffs(passed) - 1);
            if (nonzero) last_nonzero = (long long)(first + i + 31 - __clz(nonzero));
            before += __shfl_sync(0xffffffffu, sum, 31);
        }
        if (lane == 0) out[s] = sample >= 0 ? sample : last_nonzero;
    }
}

extern "C" __global__ void __launch_bounds__(256)
collapse(amp_t* __restrict__ state, index_t num_amps, index_t mask, index_t value, double scale) {
    const real_t factor = (real_t)scale;
    for (index_t i = (index_t)blockIdx.x * blockDim.x + threadIdx.x; i < num_amps; i += (index_t)gridDim.x * blockDim.x) {
        amp_t a = state[i];
        const bool keep = (i & mask) == value;
        a.x = keep ? a.x * factor : (real_t)0;  // rounds once
        a.y = keep ? a.y * factor : (real_t)0;
        state[i] = a;
    }
}
