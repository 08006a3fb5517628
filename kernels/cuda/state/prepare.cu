// state/prepare.cu -- writes a product state: state[i] = low[i's low bits] * (middle[next bits] * high[the rest]).
// Arrays     state amp_t[2^n] out; low, middle, high amp_t tables of 2^bits products of the qubits' factors
// Launch     1-D grid, grid-stride over chunks of 2^low_bits amplitudes: any grid is correct
// Work       16 B a complex128 amplitude, written once: half a pass, bound by memory
// Exactness  two rounded products per amplitude; exact for basis states
#include "common/common.cuh"

extern "C" __global__ void __launch_bounds__(256)
prepare(amp_t* __restrict__ state, const amp_t* __restrict__ low, const amp_t* __restrict__ middle, const amp_t* __restrict__ high,
        int low_bits, int middle_bits, index_t num_chunks) {
    for (index_t chunk = blockIdx.x; chunk < num_chunks; chunk += gridDim.x) {
        const amp_t outer = cmul(__ldg(middle + (chunk & ((1ull << middle_bits) - 1))), __ldg(high + (chunk >> middle_bits)));
        amp_t* out = state + (chunk << low_bits);
        for (unsigned i = threadIdx.x; i < 1u << low_bits; i += blockDim.x) out[i] = cmul(__ldg(low + i), outer);
    }
}
