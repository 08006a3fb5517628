// base/aligned.hpp -- a vector whose first element is aligned to the widest vector register.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace qsim {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

inline std::size_t alignment_of(std::size_t bytes) { return bytes >= 2 * kHugePage ? kHugePage : kAlignment; }

template <class T>
struct AlignedAllocator {
    using value_type = T;
    AlignedAllocator() = default;
    template <class U>
    AlignedAllocator(const AlignedAllocator<U>&) {}
    T* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T), alignment = alignment_of(bytes);
        void* data = ::operator new(bytes, std::align_val_t{alignment});
#ifdef MADV_HUGEPAGE
        if (alignment == kHugePage) madvise(data, bytes, MADV_HUGEPAGE);  // a packed matrix: 512 times fewer page faults
#endif
        return static_cast<T*>(data);
    }
    void deallocate(T* data, std::size_t count) { ::operator delete(data, std::align_val_t{alignment_of(count * sizeof(T))}); }
    template <class U>
    bool operator==(const AlignedAllocator<U>&) const { return true; }
    template <class U>
    bool operator!=(const AlignedAllocator<U>&) const { return false; }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

// Appends zeros until the size is a multiple of the alignment; returns it.
template <class T>
std::size_t align_end(AlignedVector<T>& values) {
    while (values.size() * sizeof(T) % (2 * kAlignment)) values.push_back(T{});
    return values.size();
}

}  // namespace qsim
