// sampling/outcomes.cpp -- gathers bits, counts by a table or by sorting, writes hexadecimal numbers.
#include "sampling/outcomes.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace qsim {

namespace {

constexpr int kWordBits = 64;
constexpr int kDigitBits = 11;             // a table of 2048 counters stays in a first-level cache
constexpr std::size_t kRadixCount = 4096;  // fewer keys are sorted by comparing
constexpr int kTableShare = 8;             // a table of at most so many entries per sample beats a sort

index_t shifted(index_t value, int left) { return left < 0 ? value >> -left : value << left; }

// Key of each sample: bit j is its bit `qubits[j]`; bits that move equally far move together.
std::vector<index_t> gather(const std::int64_t* samples, std::size_t count, const std::vector<int>& qubits) {
    std::map<int, index_t> masks;  // by shift to the left
    for (std::size_t j = 0; j < qubits.size(); ++j) masks[static_cast<int>(j) - qubits[j]] |= index_t{1} << qubits[j];
    std::vector<index_t> keys(count);
    for (const auto& [left, mask] : masks) {
        const index_t bits = mask;
        if (left < 0) {
            const int right = -left;
            for (std::size_t i = 0; i < count; ++i) keys[i] |= (static_cast<index_t>(samples[i]) & bits) >> right;
        } else {
            for (std::size_t i = 0; i < count; ++i) keys[i] |= (static_cast<index_t>(samples[i]) & bits) << left;
        }
    }
    return keys;
}

void sort_keys(std::vector<index_t>& keys, int num_bits) {
    if (keys.size() < kRadixCount) {
        std::sort(keys.begin(), keys.end());
        return;
    }
    constexpr index_t kDigit = (index_t{1} << kDigitBits) - 1;
    std::vector<index_t> other(keys.size());
    for (int low = 0; low < num_bits; low += kDigitBits) {
        std::array<std::size_t, kDigit + 1> place{};
        for (index_t key : keys) ++place[key >> low & kDigit];
        std::size_t start = 0;
        for (std::size_t& entry : place) start += std::exchange(entry, start);
        for (index_t key : keys) other[place[key >> low & kDigit]++] = key;
        keys.swap(other);
    }
}

Outcomes by_table(const std::vector<index_t>& keys, int num_bits, bool memory) {
    Outcomes out;
    std::vector<std::uint32_t> table(std::size_t{1} << num_bits);
    for (index_t key : keys) ++table[key];
    for (std::size_t key = 0; key < table.size(); ++key) {
        if (!table[key]) continue;
        out.keys.push_back(key);
        out.counts.push_back(table[key]);
        table[key] = static_cast<std::uint32_t>(out.keys.size() - 1);
    }
    if (memory)
        for (index_t key : keys) out.order.push_back(table[key]);
    return out;
}

Outcomes by_sorting(const std::vector<index_t>& keys, int num_bits, bool memory) {
    Outcomes out;
    std::vector<index_t> sorted(keys);
    sort_keys(sorted, num_bits);
    for (index_t key : sorted) {
        if (out.keys.empty() || out.keys.back() != key) {
            out.keys.push_back(key);
            out.counts.push_back(0);
        }
        ++out.counts.back();
    }
    if (memory)
        for (index_t key : keys) out.order.push_back(std::lower_bound(out.keys.begin(), out.keys.end(), key) - out.keys.begin());
    return out;
}

}  // namespace

Outcomes distinct_outcomes(const std::int64_t* samples, std::size_t count, Reads& reads, bool memory) {
    std::vector<int> qubits;
    for (const auto& [qubit, bit] : reads) qubits.push_back(qubit);
    std::sort(qubits.begin(), qubits.end());
    qubits.erase(std::unique(qubits.begin(), qubits.end()), qubits.end());
    for (auto& [qubit, bit] : reads)
        qubit = static_cast<int>(std::lower_bound(qubits.begin(), qubits.end(), qubit) - qubits.begin());
    const std::vector<index_t> keys = gather(samples, count, qubits);
    const int num_bits = static_cast<int>(qubits.size());
    const bool small = num_bits < kWordBits / 2 && index_t{1} << num_bits <= kTableShare * count;
    return small ? by_table(keys, num_bits, memory) : by_sorting(keys, num_bits, memory);
}

ValueWriter::ValueWriter(const Reads& reads, std::vector<index_t> base) : base_(std::move(base)) {
    std::map<std::pair<int, int>, index_t> masks;
    int words = 1;
    for (const auto& [place, bit] : reads) {
        masks[{bit / kWordBits, bit % kWordBits - place}] |= index_t{1} << place;
        words = std::max(words, bit / kWordBits + 1);
    }
    for (const auto& [where, mask] : masks) moves_.push_back({mask, where.first, where.second});
    base_.resize(std::max<std::size_t>(words, base_.size()));
}

const std::string& ValueWriter::text(index_t key) {
    words_ = base_;
    for (const Move& move : moves_) words_[move.word] |= shifted(key & move.mask, move.left);
    std::size_t top = words_.size() - 1;
    while (top && !words_[top]) --top;
    int nibble = kWordBits / 4 - 1;
    while (nibble && !(words_[top] >> 4 * nibble)) --nibble;
    text_ = "0x";
    for (std::size_t word = top + 1; word-- > 0; nibble = kWordBits / 4 - 1)
        for (int n = nibble; n >= 0; --n) text_ += "0123456789abcdef"[words_[word] >> 4 * n & 15];
    return text_;
}

}  // namespace qsim
