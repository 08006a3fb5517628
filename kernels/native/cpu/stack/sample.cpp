// cpu/stack/sample.cpp -- looks uniform numbers up in the distribution of each state, and sorts or counts what they hit.
#include "cpu/stack/sample.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/aligned.hpp"
#include "base/parallel.hpp"
#include "sampling/stream.hpp"

namespace qsim {

namespace {

constexpr index_t kBlock = 256;     // uniform numbers made before they are looked up
constexpr int kEntriesPerState = 2;  // of the table: most entries lead to the right state or to the one before it

// The distribution of one state's outcomes. A uniform number is looked up in a table; its entry is a state not beyond the
// first that a number of that size may give. Nothing here branches on what the numbers are.
class Distribution {
  public:
    // `re`, `im`: 2^num_qubits amplitudes.
    void set(const double* re, const double* im, int num_qubits) {
        const index_t size = index_t{1} << num_qubits, entries = kEntriesPerState * size;
        cumulative_.resize(size);
        sum_ = 0;
        for (index_t i = 0; i < size; ++i) cumulative_[i] = sum_ += re[i] * re[i] + im[i] * im[i];
        index_t last = size - 1;  // that is not zero: below it lies all that a threshold can pass, whatever the rounding
        while (last && re[last] == 0 && im[last] == 0) --last;
        entries_ = static_cast<double>(entries);
        // A state's entry is where the next one begins, rounded up: too late costs a step, too early would be wrong.
        const double scale = entries_ / sum_ * (1 + 0x1p-48);
        starts_.assign(entries + 1, 0);
        for (index_t i = 0; i < last; ++i)
            starts_[std::min(entries, static_cast<index_t>(cumulative_[i] * scale) + 1)] = static_cast<std::uint16_t>(i + 1);
        for (index_t entry = 1; entry < entries; ++entry) starts_[entry] = std::max(starts_[entry], starts_[entry - 1]);
        cumulative_[last] = std::numeric_limits<double>::infinity();
    }

    // The first state whose cumulative probability exceeds `uniform` times the norm.
    index_t at(double uniform) const {
        const double threshold = uniform * sum_;
        index_t i = starts_[static_cast<index_t>(uniform * entries_)];  // exact: entries_ is a power of two
        i += cumulative_[i] <= threshold;
        i += cumulative_[i] <= threshold;
        while (cumulative_[i] <= threshold) ++i;
        return i;
    }

  private:
    std::vector<double> cumulative_;
    std::vector<std::uint16_t> starts_;
    double sum_ = 1, entries_ = 1;
};

struct Worker {
    AlignedVector<double> room;  // of the widest state: its tile, and scratch of two
    Distribution distribution;
    std::vector<std::uint32_t> counts, by_key;
};

struct RowShots {
    std::vector<std::int64_t> keys, counts;
};

// Counts each state that the stream's numbers give; with `order` also notes each one.
void draw(Stream stream, index_t shots, std::uint16_t* order, Worker& own) {
    double uniforms[kBlock];
    for (index_t shot = 0; shot < shots; shot += kBlock) {
        const index_t count = std::min(kBlock, shots - shot);
        for (index_t k = 0; k < count; ++k) uniforms[k] = stream.uniform();
        for (index_t k = 0; k < count; ++k) {
            const index_t state = own.distribution.at(uniforms[k]);
            ++own.counts[state];
            if (order) order[shot + k] = static_cast<std::uint16_t>(state);
        }
    }
}

RowShots distinct(const std::vector<std::uint32_t>& counts, index_t shots) {
    RowShots out;
    const index_t room = std::min<index_t>(counts.size(), shots) + 1;  // one for an entry that is written and not kept
    out.keys.resize(room);
    out.counts.resize(room);
    index_t found = 0;
    for (index_t key = 0; key < counts.size(); ++key) {
        out.keys[found] = static_cast<std::int64_t>(key);
        out.counts[found] = counts[key];
        found += counts[key] != 0;
    }
    out.keys.resize(found);
    out.counts.resize(found);
    return out;
}

int qubits_of(const StackRows& rows) {
    return rows.program ? rows.program->num_qubits() : 63 - __builtin_clzll(rows.width);
}

index_t tile_size(const StackRows& rows) { return rows.program ? rows.program->tile_size() : rows.width; }

RowShots sample_row(const StackRows& rows, index_t row, const Stream& stream, index_t shots, std::uint16_t* order, Worker& own) {
    const int num_qubits = qubits_of(rows), count = static_cast<int>(rows.qubits.size());
    const index_t size = tile_size(rows);
    const std::complex<double>* numbers = rows.values + row * rows.width;
    double *re = own.room.data(), *im = re + size;
    if (rows.program) rows.program->prepare(numbers, {re, im, rows.program->tile_bits(), 0}, im + size);
    else
        for (index_t i = 0; i < size; ++i) re[i] = numbers[i].real(), im[i] = numbers[i].imag();
    own.distribution.set(re, im, num_qubits);
    own.counts.assign(index_t{1} << num_qubits, 0);
    draw(stream, shots, order, own);
    if (count == num_qubits) return distinct(own.counts, shots);
    for (index_t shot = 0; order && shot < shots; ++shot)
        order[shot] = static_cast<std::uint16_t>(extract(order[shot], rows.qubits.data(), count));
    own.by_key.assign(index_t{1} << count, 0);
    for (index_t state = 0; state < own.counts.size(); ++state)
        if (own.counts[state]) own.by_key[extract(state, rows.qubits.data(), count)] += own.counts[state];
    return distinct(own.by_key, shots);
}

}  // namespace

StackShots sample_rows(const std::vector<StackRows>& all, const std::vector<std::uint32_t>& seed, index_t shots, bool memory,
                       int threads) {
    std::vector<std::pair<const StackRows*, index_t>> places;
    index_t widest = 0;
    for (const StackRows& rows : all) {
        if (rows.program && (!rows.program->whole() || rows.width < rows.program->width()))
            throw std::invalid_argument("a stack runs whole states with all their numbers");
        if (!rows.program && (!rows.width || rows.width & (rows.width - 1) || qubits_of(rows) > kStackTile))
            throw std::invalid_argument("states of a stack have a power of two of amplitudes, few enough for a tile");
        widest = std::max(widest, tile_size(rows));
        for (index_t row = 0; row < rows.rows; ++row) places.emplace_back(&rows, row);
    }
    std::vector<Worker> workers(std::max(threads, 1));
    std::vector<RowShots> found(places.size());
    StackShots out;
    out.order.resize(memory ? places.size() * shots : 0);
    parallel_chunks(places.size(), threads, [&](index_t number, int thread) {
        Worker& own = workers[thread];
        if (own.room.empty()) own.room.resize(6 * widest);
        const auto [rows, row] = places[number];
        found[number] = sample_row(*rows, row, Stream(seed, key_words(rows->first + row)), shots,
                                   memory ? out.order.data() + number * shots : nullptr, own);
    });
    for (const RowShots& row : found) {
        out.keys.insert(out.keys.end(), row.keys.begin(), row.keys.end());
        out.counts.insert(out.counts.end(), row.counts.begin(), row.counts.end());
        out.ends.push_back(static_cast<std::int64_t>(out.keys.size()));
    }
    return out;
}

}  // namespace qsim
