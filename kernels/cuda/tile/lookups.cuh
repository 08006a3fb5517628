// tile/lookups.cuh -- operators of interpreter.cu whose entries lie in memory: any diagonal, any permutation with phases in the tile.
// They are rare, so their code is short: the compiler's time is a part of a first run on a new machine.
#pragma once
#include "tile/gates.cuh"

// Data words: pointer to entries, pointer to sources, contributions of the register bits to the entry's
// index, then one qubit position per index bit (64 where a register bit holds it), then one slot mask per index bit.
__device__ __forceinline__ index_t entry_index(const index_t* data, unsigned k, index_t base) {
    index_t entry = 0;
    for (unsigned i = 0; i < k; ++i) {
        const index_t position = __ldg(data + 2 + kRegisterQubits + i);
        if (position < 64) entry |= ((base >> position) & 1) << i;
    }
    return entry;
}

__device__ __forceinline__ void diagonal(Amps& a, const index_t* program, const Op& op, index_t base) {
    if (!holds(program + op.at, base)) return;
    const unsigned mask = hidden(arg_of(op) & 31), value = (arg_of(op) >> 5) & 31;
    const index_t* data = program + op.at + 2;
    const amp_t* entries = reinterpret_cast<const amp_t*>(__ldg(data));
    entries += entry_index(data, arg_of(op) >> 10, base);
#pragma unroll
    for (int i = 0; i < kAmps; ++i) {
        const int r = gray(i);
        if ((r & mask) == value) a[r] = cmul(a[r], __ldg(entries));
        if (i < kAmps - 1) entries = hidden(entries + gray_step(data + 2, i));
    }
}

// Results come into registers in groups of 4: a loop over single registers, unrolled, would be a third of the kernel's code.
__device__ __forceinline__ void permute(Amps& a, const index_t* program, const Op& op, index_t base, unsigned slot,
                                        unsigned layout, const char* shared) {
    const bool on = holds(program + op.at, base);
    const unsigned mask = arg_of(op) & 31, value = (arg_of(op) >> 5) & 31, k = arg_of(op) >> 10;
    const index_t* data = program + op.at + 2;
    const amp_t* entries = reinterpret_cast<const amp_t*>(__ldg(data));
    const unsigned* sources = reinterpret_cast<const unsigned*>(__ldg(data + 1));
    const unsigned first = (unsigned)entry_index(data, k, base);
#pragma unroll 1
    for (int group = 0; group < kAmps / 4; ++group) {
        amp_t y[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const unsigned r = 4 * group + j;
            unsigned entry = first, from = slot;
#pragma unroll
            for (int b = 0; b < kRegisterQubits; ++b)
                if ((r >> b) & 1) {
                    entry += (unsigned)__ldg(data + 2 + b);
                    from ^= (unsigned)__ldg(program + layout + kRegisterQubits + b);
                }
            const bool acts = on && (r & mask) == value;
            amp_t w = {1, 0};
            if (acts) {
                const unsigned source = __ldg(sources + entry);  // amplitude `source` goes to `entry`
                for (unsigned i = 0; i < k; ++i)
                    if (((source ^ entry) >> i) & 1) from ^= (unsigned)__ldg(data + 2 + kRegisterQubits + k + i);
                w = __ldg(entries + source);
            }
            y[j] = *reinterpret_cast<const amp_t*>(shared + from);
            if (acts) y[j] = cmul(y[j], w);
        }
#pragma unroll
        for (int g = 0; g < kAmps / 4; ++g)
            if (g == group) {
#pragma unroll
                for (int j = 0; j < 4; ++j) a[4 * g + j] = y[j];
            }
    }
}
