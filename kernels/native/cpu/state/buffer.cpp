// cpu/state/buffer.cpp -- large states get anonymous mappings: the kernel zeroes pages when they are first touched, by the thread that
// touches them. Small ones come from the heap, which hands the same memory out again without a fault.
#include "cpu/state/buffer.hpp"

#include "base/aligned.hpp"

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#define QSIM_MMAP
#endif

namespace qsim {

namespace {

void* aligned(void* start, std::size_t alignment) {
    return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(start) + alignment - 1) / alignment * alignment);
}

}  // namespace

void Buffer::take_from_heap(std::size_t alignment) {
    mapping_ = std::calloc(1, bytes_ + alignment);
    if (!mapping_) throw std::bad_alloc();
    data_ = aligned(mapping_, alignment);
}

#ifdef QSIM_MMAP

namespace {

constexpr std::size_t kKeptShare = 16;  // at most this fraction of the machine's memory is kept

struct Kept {
    void* mapping = nullptr;
    std::size_t mapping_bytes = 0, bytes = 0;
};

std::mutex kept_mutex;
Kept kept;

// Exchanges what is kept for `next` and unmaps it; returns its bytes.
std::size_t replace_kept(Kept next) {
    {
        const std::lock_guard<std::mutex> lock(kept_mutex);
        std::swap(kept, next);
    }
    if (next.mapping) munmap(next.mapping, next.mapping_bytes);
    return next.bytes;
}

bool worth_keeping(std::size_t bytes) {
    const std::size_t memory = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes <= memory / kKeptShare;
}

}  // namespace

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
    if (bytes < kHugePage) {
        take_from_heap(kAlignment);
        return;
    }
    mapping_bytes_ = bytes + kHugePage;
    {
        const std::lock_guard<std::mutex> lock(kept_mutex);
        if (kept.mapping && kept.bytes == bytes) {
            mapping_ = std::exchange(kept, Kept{}).mapping;
            recycled_ = true;
        }
    }
    if (!mapping_) {
        release_kept_buffer();  // two large states at one time are one too many
        mapping_ = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapping_ == MAP_FAILED) {
            mapping_ = nullptr;
            throw std::bad_alloc();
        }
    }
    data_ = aligned(mapping_, kHugePage);
#ifdef MADV_HUGEPAGE
    if (!recycled_) madvise(data_, bytes, MADV_HUGEPAGE);
#endif
}

Buffer::~Buffer() {
    if (!mapping_bytes_) std::free(mapping_);
    else if (worth_keeping(bytes_)) replace_kept({mapping_, mapping_bytes_, bytes_});
    else munmap(mapping_, mapping_bytes_);
}

std::size_t release_kept_buffer() { return replace_kept({}); }

#else

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
    take_from_heap(kHugePage);
}

Buffer::~Buffer() { std::free(mapping_); }

std::size_t release_kept_buffer() { return 0; }

#endif

}  // namespace qsim
