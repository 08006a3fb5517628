// tile/parity.cuh -- the operator of interpreter.cu that reads qubits of every place: registers, threads and tiles.
#pragma once
#include "tile/gates.cuh"

// a[r] *= one of two factors, by the parity of the basis state's bits under a mask.
__device__ __forceinline__ void parity_factors(Amps& a, const index_t* program, const Op& op, index_t base) {
    const ulonglong2 masks = __ldg(reinterpret_cast<const ulonglong2*>(program + op.at));
    const unsigned odd = hidden((unsigned)masks.y ^ (__popcll(base & masks.x) & 1 ? kEvery : 0u));
    const amp_t* factors = reinterpret_cast<const amp_t*>(program + op.at + 2);
    const amp_t w0 = __ldg(factors), w1 = __ldg(factors + 1);
#pragma unroll
    for (int r = 0; r < kAmps; ++r) {
        const bool takes_odd = (odd >> r) & 1;
        a[r] = cmul(a[r], amp_t{takes_odd ? w1.x : w0.x, takes_odd ? w1.y : w0.y});
    }
}
