// aligned.hpp -- a vector whose first element is aligned to the widest vector register.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace qsim {

constexpr std::size_t kAlignment = 64;

template <class T>
struct AlignedAllocator {
    using value_type = T;
    AlignedAllocator() = default;
    template <class U>
    AlignedAllocator(const AlignedAllocator<U>&) {}
    T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{kAlignment})); }
    void deallocate(T* data, std::size_t) { ::operator delete(data, std::align_val_t{kAlignment}); }
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
