// pages.hpp -- which pages of a state were ever written: the others hold zeros, and reading them would only cost page faults.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace qsim {

constexpr int kPageBits = 21;  // log2 of the bytes of a huge page, in which the system hands out a large state's memory

// One flag a page; threads may set flags at one time, and a flag once set stays.
class Pages {
  public:
    explicit Pages(std::size_t bytes) : written_(std::max<std::size_t>(1, bytes >> kPageBits), 0) { written_[0] = 1; }

    void mark_all() { std::fill(written_.begin(), written_.end(), 1); }
    bool all_written() const { return std::find(written_.begin(), written_.end(), 0) == written_.end(); }
    std::uint8_t* flags() { return written_.data(); }

  private:
    std::vector<std::uint8_t> written_;
};

inline bool is_written(const std::uint8_t* flags, std::uint64_t page) { return __atomic_load_n(flags + page, __ATOMIC_RELAXED); }
inline void set_written(std::uint8_t* flags, std::uint64_t page) { __atomic_store_n(flags + page, std::uint8_t{1}, __ATOMIC_RELAXED); }

}  // namespace qsim
