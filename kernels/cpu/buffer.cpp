// buffer.cpp -- anonymous mappings: the kernel zeroes pages when they are first touched, by the thread that touches them.
#include "buffer.hpp"

#include "aligned.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define QSIM_MMAP
#endif

namespace qsim {

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
#ifdef QSIM_MMAP
    const std::size_t slack = bytes >= kHugePage ? kHugePage : 4096;
    mapping_bytes_ = bytes + slack;
    mapping_ = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping_ == MAP_FAILED) {
        mapping_ = nullptr;
        throw std::bad_alloc();
    }
    const auto address = (reinterpret_cast<std::uintptr_t>(mapping_) + slack - 1) / slack * slack;
    data_ = reinterpret_cast<void*>(address);
#ifdef MADV_HUGEPAGE
    if (bytes >= kHugePage) madvise(data_, bytes, MADV_HUGEPAGE);
#endif
#else
    mapping_ = std::calloc(1, bytes + kHugePage);
    if (!mapping_) throw std::bad_alloc();
    data_ = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(mapping_) + kHugePage - 1) / kHugePage * kHugePage);
#endif
}

Buffer::~Buffer() {
#ifdef QSIM_MMAP
    if (mapping_) munmap(mapping_, mapping_bytes_);
#else
    std::free(mapping_);
#endif
}

}  // namespace qsim
