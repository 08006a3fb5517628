// cpu/state/measure.cpp -- sums, samples and collapses of a state, chunk by chunk.
#include "cpu/state/measure.hpp"

#include <algorithm>
#include <numeric>

#include "base/parallel.hpp"

namespace qsim {

namespace {

constexpr int kChunkBits = 14;      // amplitudes one thread takes at a time
constexpr int kSampleBits = 10;     // amplitudes between two entries of the cumulative table
constexpr index_t kLeastRun = 8;    // amplitudes of a run that a collapse scales or clears as a whole
constexpr int kHistogramChunks = 16;  // partial histograms of a marginal

template <class Real>
double probability(std::complex<Real> amp) {
    const double re = amp.real(), im = amp.imag();
    return re * re + im * im;
}

// Four running sums: their order is fixed, and they need no loop-carried wait.
template <class Real>
double sum_probabilities(const std::complex<Real>* from, index_t count) {
    double sums[4] = {0, 0, 0, 0};
    index_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int j = 0; j < 4; ++j) sums[j] += probability(from[i + j]);
    for (; i < count; ++i) sums[0] += probability(from[i]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class Real>
std::vector<double> chunk_sums(const std::complex<Real>* state, int num_qubits, int chunk_bits, int threads) {
    const index_t size = index_t{1} << num_qubits, chunk = std::min(size, index_t{1} << chunk_bits);
    std::vector<double> sums(size / chunk);
    const index_t batch = std::max<index_t>(1, (index_t{1} << kChunkBits) / chunk);
    parallel_chunks((sums.size() + batch - 1) / batch, threads, [&](index_t number, int) {
        for (index_t k = number * batch; k < std::min<index_t>(sums.size(), (number + 1) * batch); ++k)
            sums[k] = sum_probabilities(state + k * chunk, chunk);
    });
    return sums;
}

// out[j] for Count outcomes from `first` on, side by side, for one sum alone waits for its last addition. `others`: index bits
// of the qubits that are not measured, whose values come in ascending order.
template <int Count, class Real>
void sum_outcomes(const std::complex<Real>* state, const std::vector<int>& qubits, index_t others, index_t first, double* out) {
    index_t bases[Count];
    double sums[Count] = {};
    for (int k = 0; k < Count; ++k) bases[k] = deposit(first + k, qubits.data(), static_cast<int>(qubits.size()));
    index_t other = 0;
    do {
        for (int k = 0; k < Count; ++k) sums[k] += probability(state[bases[k] | other]);
        other = (other - others) & others;
    } while (other);
    std::copy(sums, sums + Count, out + first);
}

}  // namespace

template <class Real>
void prepare_product(std::complex<Real>* state, int num_qubits, const std::complex<double>* factors, const PageView& pages,
                     int threads) {
    const int low_bits = std::min(num_qubits, kChunkBits - 2), high_bits = num_qubits - low_bits;
    std::vector<std::complex<double>> low(index_t{1} << low_bits);
    low[0] = 1;
    for (int q = 0; q < low_bits; ++q)
        for (index_t i = 0, half = index_t{1} << q; i < half; ++i) {
            low[half + i] = low[i] * factors[2 * q + 1];
            low[i] *= factors[2 * q];
        }
    const std::vector<std::complex<Real>> rounded(low.begin(), low.end());
    bool whole_pages = true;  // where one chunk of a page is written, all are
    for (int q = low_bits; q < num_qubits && (sizeof(std::complex<Real>) << q) < pages.page_bytes; ++q)
        whole_pages = whole_pages && factors[2 * q] != 0.0 && factors[2 * q + 1] != 0.0;
    parallel_chunks(index_t{1} << high_bits, threads, [&](index_t high, int) {
        std::complex<double> factor = 1;
        for (int q = 0; q < high_bits; ++q) factor *= factors[2 * (low_bits + q) + bit(high, q)];
        std::complex<Real>* to = state + (high << low_bits);
        if (pages.flags) {
            const index_t page = (to - state) * sizeof(std::complex<Real>) >> kPageBits;
            if (factor == 0.0 && !pages.in_use(page)) return;
            if (whole_pages) pages.mark(page);
            else pages.open(page);
        }
        const Real a = static_cast<Real>(factor.real()), b = static_cast<Real>(factor.imag());
        for (index_t i = 0; i < low.size(); ++i) {
            const Real re = rounded[i].real(), im = rounded[i].imag();
            to[i] = {a * re - b * im, a * im + b * re};
        }
    });
}

template <class Real>
double norm_squared(const std::complex<Real>* state, int num_qubits, int threads) {
    const auto sums = chunk_sums(state, num_qubits, kChunkBits, threads);
    return std::accumulate(sums.begin(), sums.end(), 0.0);
}

template <class Real>
void marginal_probabilities(const std::complex<Real>* state, int num_qubits, const std::vector<int>& qubits, double* out,
                            int threads) {
    const int count = static_cast<int>(qubits.size());
    const index_t outcomes = index_t{1} << count;
    index_t others = (index_t{1} << num_qubits) - 1;
    for (int q : qubits) others &= ~(index_t{1} << q);
    if (count <= 12 && num_qubits > 12) {  // few outcomes: histograms of contiguous chunks
        const index_t chunk = (index_t{1} << num_qubits) / kHistogramChunks;
        std::vector<double> partial(outcomes * kHistogramChunks, 0.0);
        parallel_chunks(kHistogramChunks, threads, [&](index_t number, int) {
            for (index_t i = number * chunk; i < (number + 1) * chunk; ++i)
                partial[number * outcomes + extract(i, qubits.data(), count)] += probability(state[i]);
        });
        std::fill(out, out + outcomes, 0.0);
        for (index_t k = 0; k < partial.size(); ++k) out[k % outcomes] += partial[k];
        return;
    }
    const index_t batch = std::min<index_t>(outcomes, 256);
    parallel_chunks(outcomes / batch, threads, [&](index_t number, int) {
        index_t j = number * batch;
        const index_t end = j + batch;
        for (; j + 4 <= end; j += 4) sum_outcomes<4>(state, qubits, others, j, out);
        for (; j + 2 <= end; j += 2) sum_outcomes<2>(state, qubits, others, j, out);
        for (; j < end; ++j) sum_outcomes<1>(state, qubits, others, j, out);
    });
}

template <class Real>
void sample_states(const std::complex<Real>* state, int num_qubits, const double* uniforms, index_t count, std::int64_t* out,
                   int threads) {
    auto cumulative = chunk_sums(state, num_qubits, kSampleBits, threads);
    std::partial_sum(cumulative.begin(), cumulative.end(), cumulative.begin());
    const double total = cumulative.back();
    std::vector<std::pair<double, index_t>> thresholds(count);  // thresholds ascending, with the shot they belong to
    for (index_t i = 0; i < count; ++i) thresholds[i] = {uniforms[i] * total, i};
    std::sort(thresholds.begin(), thresholds.end());
    const index_t chunk = std::min(index_t{1} << num_qubits, index_t{1} << kSampleBits);
    const index_t batch = 4096;
    parallel_chunks((count + batch - 1) / batch, threads, [&](index_t number, int) {
        index_t last_chunk = ~index_t{0}, i = 0, end = 0, last_positive = 0;
        double sum = 0;
        for (index_t k = number * batch; k < std::min(count, (number + 1) * batch); ++k) {
            const double threshold = thresholds[k].first;
            index_t c = std::upper_bound(cumulative.begin(), cumulative.end(), threshold) - cumulative.begin();
            if (c == cumulative.size())  // rounding at the very end: the last chunk that holds anything
                c = std::lower_bound(cumulative.begin(), cumulative.end(), total) - cumulative.begin();
            if (c != last_chunk) {
                last_chunk = c, i = c * chunk, end = i + chunk;
                sum = c ? cumulative[c - 1] : 0.0;
                last_positive = i;
                while (last_positive + 1 < end && probability(state[last_positive]) == 0) ++last_positive;
            }
            // i = first amplitude of the chunk not yet passed; all thresholds in a chunk come in ascending order
            while (i < end && sum + probability(state[i]) <= threshold) {
                sum += probability(state[i]);
                if (probability(state[i]) > 0) last_positive = i;
                ++i;
            }
            out[thresholds[k].second] = static_cast<std::int64_t>(i < end ? i : last_positive);
        }
    });
}

template <class Real>
void collapse(std::complex<Real>* state, int num_qubits, index_t mask, index_t value, double scale, int threads) {
    const index_t size = index_t{1} << num_qubits, chunk = std::min(size, index_t{1} << kChunkBits);
    const Real factor = static_cast<Real>(scale);
    const index_t run = mask ? std::min(mask & -mask, chunk) : chunk;  // amplitudes that go the same way
    const auto scaled = [factor](std::complex<Real> amp) { return std::complex<Real>(amp.real() * factor, amp.imag() * factor); };
    parallel_chunks(size / chunk, threads, [&](index_t number, int) {
        const index_t begin = number * chunk, end = begin + chunk;
        if (run < kLeastRun) {
            for (index_t i = begin; i < end; ++i) state[i] = (i & mask) == value ? scaled(state[i]) : std::complex<Real>(0);
            return;
        }
        for (index_t i = begin; i < end; i += run) {
            if ((i & mask) == value) std::transform(state + i, state + i + run, state + i, scaled);
            else std::fill(state + i, state + i + run, std::complex<Real>(0));
        }
    });
}

#define QSIM_INSTANTIATE(Real)                                                                                            \
    template void prepare_product(std::complex<Real>*, int, const std::complex<double>*, const PageView&, int);                            \
    template double norm_squared(const std::complex<Real>*, int, int);                                                    \
    template void marginal_probabilities(const std::complex<Real>*, int, const std::vector<int>&, double*, int);          \
    template void sample_states(const std::complex<Real>*, int, const double*, index_t, std::int64_t*, int);              \
    template void collapse(std::complex<Real>*, int, index_t, index_t, double, int);
QSIM_INSTANTIATE(double)
QSIM_INSTANTIATE(float)

}  // namespace qsim
