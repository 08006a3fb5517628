// sampling/stream.cpp -- seeding and steps of the generator.
// Source  M. E. O'Neill, "PCG: A family of simple fast space-efficient statistically good algorithms for random number
//         generation" (2014): XSL-RR 128/64; her randutils' seed_seq_fe, as NumPy's SeedSequence specifies it.
#include "sampling/stream.hpp"

namespace qsim {

namespace {

constexpr int kPoolWords = 4;

// A word of entropy scrambled by a constant that changes with each use.
class Scrambler {
  public:
    Scrambler(std::uint32_t start, std::uint32_t factor) : constant_(start), factor_(factor) {}
    std::uint32_t operator()(std::uint32_t word) {
        word ^= constant_;
        constant_ *= factor_;
        word *= constant_;
        return word ^ word >> 16;
    }

  private:
    std::uint32_t constant_, factor_;
};

std::uint32_t mixed(std::uint32_t into, std::uint32_t word) {
    const std::uint32_t sum = 0xca01f9ddu * into - 0x4973f715u * word;
    return sum ^ sum >> 16;
}

}  // namespace

std::vector<std::uint32_t> key_words(std::uint64_t value) {
    std::vector<std::uint32_t> words{static_cast<std::uint32_t>(value)};
    if (value >> 32) words.push_back(static_cast<std::uint32_t>(value >> 32));
    return words;
}

Stream::Stream(const std::vector<std::uint32_t>& seed, const std::vector<std::uint32_t>& key) {
    std::vector<std::uint32_t> entropy(seed);
    if (entropy.size() < kPoolWords) entropy.resize(kPoolWords);  // so that a key is never taken for a part of the seed
    entropy.insert(entropy.end(), key.begin(), key.end());
    std::uint32_t pool[kPoolWords];
    Scrambler in(0x43b0d7e5u, 0x931e8875u);
    for (int i = 0; i < kPoolWords; ++i) pool[i] = in(entropy[i]);
    for (int from = 0; from < kPoolWords; ++from)
        for (int to = 0; to < kPoolWords; ++to)
            if (from != to) pool[to] = mixed(pool[to], in(pool[from]));
    for (std::size_t from = kPoolWords; from < entropy.size(); ++from)
        for (std::uint32_t& word : pool) word = mixed(word, in(entropy[from]));

    Scrambler out(0x8b51f9ddu, 0x58f38dedu);
    std::uint64_t words[4];  // start and sequence, the high half of each first
    for (int i = 0; i < 4; ++i) {
        const std::uint64_t low = out(pool[2 * i % kPoolWords]), high = out(pool[(2 * i + 1) % kPoolWords]);
        words[i] = high << 32 | low;
    }
    const State start = State{words[0]} << 64 | words[1], sequence = State{words[2]} << 64 | words[3];
    increment_ = sequence << 1 | 1;
    next();
    state_ += start;
    next();
}

std::uint64_t Stream::next() {
    constexpr State kFactor = State{2549297995355413924u} << 64 | 4865540595714422341u;
    state_ = state_ * kFactor + increment_;
    const auto folded = static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
    const int turn = static_cast<int>(state_ >> 122);
    return folded >> turn | folded << (-turn & 63);
}

}  // namespace qsim
