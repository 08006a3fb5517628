// cpu/state/pauli.cpp -- products of a chunk's amplitudes, folded or transformed into the values of all strings.
// Source  P|i> = i^(number of Y) (-1)^(bits of i in z) |i ^ x>. Sums with signs are Walsh-Hadamard sums: folded one qubit
//         at a time for few strings, the whole transform for many (arXiv:quant-ph/0406176, section 3).
#include "cpu/state/pauli.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/parallel.hpp"
#include "cpu/tuning.hpp"

namespace qsim {

namespace {

constexpr index_t kBatches = 64;        // partial sums: their number, and so their order, is fixed
constexpr index_t kTransformFrom = 10;  // strings of one group from which on the whole transform is cheaper than folds

int parity(index_t bits) { return __builtin_parityll(bits); }
int count_y(index_t x, index_t z) { return __builtin_popcountll(x & z); }

// Strings that read the same products: one x, and an even or odd number of Y (real or imaginary parts).
struct Group {
    index_t x, first, count;  // of the sorted strings
    bool odd;
    int half;                 // highest bit of x: pairs i, i ^ x give equal terms, so chunks above it are skipped
};

std::vector<Group> make_groups(const index_t* x, const index_t* z, std::vector<index_t>& order) {
    std::sort(order.begin(), order.end(), [&](index_t a, index_t b) {
        const bool odd_a = count_y(x[a], z[a]) & 1, odd_b = count_y(x[b], z[b]) & 1;
        return x[a] != x[b] ? x[a] < x[b] : odd_a != odd_b ? odd_a < odd_b : a < b;
    });
    std::vector<Group> groups;
    for (index_t k = 0; k < order.size(); ++k) {
        const index_t flips = x[order[k]];
        const bool odd = count_y(flips, z[order[k]]) & 1;
        if (groups.empty() || groups.back().x != flips || groups.back().odd != odd)
            groups.push_back({flips, k, 0, odd, flips ? 63 - __builtin_clzll(flips) : -1});
        ++groups.back().count;
    }
    return groups;
}

// products[i] = Re or Im of conj(state[i ^ x]) state[i] in one chunk.
template <class Real>
void multiply_chunk(const std::complex<Real>* own, const std::complex<Real>* partner, index_t x, bool imaginary, index_t size,
                    double* products) {
    for (index_t i = 0; i < size; ++i) {
        const double a = partner[i ^ x].real(), b = partner[i ^ x].imag(), c = own[i].real(), d = own[i].imag();
        products[i] = imaginary ? a * d - b * c : a * c + b * d;
    }
}

// Sum of (-1)^(bits of i in z) values[i]: halves are folded from the top.
double fold(const double* values, index_t z, int bits, double* copy) {
    const double* from = values;
    for (int b = bits - 1; b >= 0; --b) {
        const index_t half = index_t{1} << b;
        if (bit(z, b)) for (index_t i = 0; i < half; ++i) copy[i] = from[i] - from[half + i];
        else for (index_t i = 0; i < half; ++i) copy[i] = from[i] + from[half + i];
        from = copy;
    }
    return from[0];
}

void transform(double* values, int bits) {
    for (int b = 0; b < bits; ++b) {
        const index_t half = index_t{1} << b;
        for (index_t base = 0; base < index_t{1} << bits; base += 2 * half)
            for (index_t i = base; i < base + half; ++i) {
                const double a = values[i], c = values[half + i];
                values[i] = a + c, values[half + i] = a - c;
            }
    }
}

}  // namespace

template <class Real>
void pauli_expectations(const std::complex<Real>* state, int num_qubits, const index_t* x, const index_t* z, index_t count,
                        double* out, int threads) {
    std::vector<index_t> order(count);
    std::iota(order.begin(), order.end(), index_t{0});
    const std::vector<Group> groups = make_groups(x, z, order);
    const int bits = std::min(num_qubits, kPauliChunkBits);
    const index_t size = index_t{1} << bits, low = size - 1, chunks = index_t{1} << (num_qubits - bits);
    const index_t batches = std::min(chunks, kBatches), share = chunks / batches;
    std::vector<double> partial(batches * count, 0.0);
    parallel_chunks(batches, threads, [&](index_t number, int) {
        std::vector<double> products(size), copy(size);
        double* sums = partial.data() + number * count;
        for (index_t chunk = number * share; chunk < (number + 1) * share; ++chunk)
            for (const Group& group : groups) {
                if (group.half >= bits && bit(chunk, group.half - bits)) continue;
                const double twice = group.half >= bits ? 2 : 1;
                multiply_chunk(state + (chunk << bits), state + ((chunk ^ group.x >> bits) << bits), group.x & low, group.odd,
                               size, products.data());
                const bool whole = group.count >= kTransformFrom;
                if (whole) transform(products.data(), bits);
                for (index_t k = group.first; k < group.first + group.count; ++k) {
                    const index_t signs = z[order[k]];
                    const double sum = whole ? products[signs & low] : fold(products.data(), signs & low, bits, copy.data());
                    sums[k] += (parity(signs >> bits & chunk) ? -twice : twice) * sum;
                }
            }
    });
    for (index_t k = 0; k < count; ++k) {
        double sum = 0;
        for (index_t number = 0; number < batches; ++number) sum += partial[number * count + k];
        const int y = count_y(x[order[k]], z[order[k]]) & 3;  // Re(i^y w): w', -w'', -w', w''
        out[order[k]] = y == 1 || y == 2 ? -sum : sum;
    }
}

void pauli_sum(const std::complex<double>* state, int num_qubits, const index_t* x, const index_t* z, const double* weights,
               index_t count, std::complex<double>* out, int threads) {
    const int bits = std::min(num_qubits, kPauliChunkBits);
    const index_t size = index_t{1} << bits, low = size - 1;
    parallel_chunks(index_t{1} << (num_qubits - bits), threads, [&](index_t chunk, int) {
        std::complex<double>* to = out + (chunk << bits);
        std::vector<double> sign(size);
        std::fill(to, to + size, 0.0);
        for (index_t k = 0; k < count; ++k) {
            const std::complex<double>* from = state + ((chunk ^ x[k] >> bits) << bits);
            const int y = count_y(x[k], z[k]) & 3;
            sign[0] = (parity(z[k] >> bits & (chunk ^ x[k] >> bits)) ? -weights[k] : weights[k]) * (y >= 2 ? -1 : 1);
            for (int b = 0; b < bits; ++b)
                for (index_t i = 0, half = index_t{1} << b; i < half; ++i) sign[half + i] = bit(z[k], b) ? -sign[i] : sign[i];
            for (index_t i = 0; i < size; ++i) {
                const index_t source = i ^ (x[k] & low);
                const double re = sign[source] * from[source].real(), im = sign[source] * from[source].imag();
                to[i] += y & 1 ? std::complex<double>(-im, re) : std::complex<double>(re, im);
            }
        }
    });
}

#define QSIM_INSTANTIATE(Real)                                                                                          \
    template void pauli_expectations(const std::complex<Real>*, int, const index_t*, const index_t*, index_t, double*, int);
QSIM_INSTANTIATE(double)
QSIM_INSTANTIATE(float)

}  // namespace qsim
