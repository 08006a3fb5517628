// cpu/state/pages.hpp -- which pages of a state hold amplitudes: the others count as zero, whatever their memory holds.
//
// New memory is zero, and reading a page of it that nobody wrote would only cost a page fault. Memory of an earlier state is
// not: there a page is zeroed before its first use. So both are handed out lazily, and sparse states touch little.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace qsim {

constexpr int kPageBits = 21;  // log2 of the bytes of a huge page, in which the system hands out a large state's memory

// The pages of one state as threads see them. `flags` is null where every page is in use.
struct PageView {
    enum : std::uint8_t { kUnused, kInHand, kInUse };

    std::uint8_t* flags = nullptr;
    char* data = nullptr;
    std::size_t page_bytes = 0;
    bool recycled = false;  // unused pages hold an earlier state's numbers

    bool in_use(std::uint64_t page) const { return __atomic_load_n(flags + page, __ATOMIC_ACQUIRE) != kUnused; }
    void mark(std::uint64_t page) const { __atomic_store_n(flags + page, std::uint8_t{kInUse}, __ATOMIC_RELEASE); }

    // The page may be read and written from here on; one thread zeroes it, others that want it wait.
    void open(std::uint64_t page) const {
        if (!recycled) return mark(page);
        std::uint8_t unused = kUnused;
        if (__atomic_compare_exchange_n(flags + page, &unused, std::uint8_t{kInHand}, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            std::memset(data + page * page_bytes, 0, page_bytes);
            return mark(page);
        }
        while (__atomic_load_n(flags + page, __ATOMIC_ACQUIRE) == kInHand) {}
    }
};

// The flags of one state.
class Pages {
  public:
    Pages(char* data, std::size_t bytes, bool recycled)
        : flags_(std::max<std::size_t>(1, bytes >> kPageBits), PageView::kUnused),
          view_{flags_.data(), data, std::min(bytes, std::size_t{1} << kPageBits), recycled} {
        view_.open(0);
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    PageView view() const {
        PageView out = view_;
        if (all_in_use()) out.flags = nullptr;
        return out;
    }
    void mark_all() { std::fill(flags_.begin(), flags_.end(), std::uint8_t{PageView::kInUse}); }
    bool all_in_use() const { return std::find(flags_.begin(), flags_.end(), PageView::kUnused) == flags_.end(); }
    std::size_t size() const { return flags_.size(); }

  private:
    std::vector<std::uint8_t> flags_;
    PageView view_;
};

}  // namespace qsim
