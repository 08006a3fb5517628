// sampling/stream.hpp -- NumPy's streams of random numbers, bit for bit: PCG64 seeded by a SeedSequence with a spawn key.
#pragma once

#include <cstdint>
#include <vector>

namespace qsim {

class Stream {
  public:
    // `seed` and `key`: integers as 32-bit words, lowest first; each integer of a key has at least one word.
    Stream(const std::vector<std::uint32_t>& seed, const std::vector<std::uint32_t>& key);

    std::uint64_t next();
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // exact: in [0, 1), a multiple of 2^-53

  private:
    __extension__ using State = unsigned __int128;
    State state_ = 0, increment_;
};

// The words of one integer of a key.
std::vector<std::uint32_t> key_words(std::uint64_t value);

}  // namespace qsim
