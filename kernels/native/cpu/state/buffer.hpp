// cpu/state/buffer.hpp -- memory of one state, aligned to a cache line, a large one to a huge page.
//
// The memory of the last state dropped is kept for the next one of its size: handing pages out again costs the system a fault
// each, and on a virtual machine whose host took them back ten times a pass over the state.
#pragma once

#include <cstddef>

namespace qsim {

class Buffer {
  public:
    explicit Buffer(std::size_t bytes);  // throws std::bad_alloc
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    void* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }
    bool recycled() const { return recycled_; }  // it holds an earlier state's numbers, else zeros

  private:
    void take_from_heap(std::size_t alignment);

    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    void* mapping_ = nullptr;  // or a piece of the heap
    std::size_t mapping_bytes_ = 0;  // 0 of the heap's
    bool recycled_ = false;
};

// Gives the memory kept for the next state back to the system; returns its bytes.
std::size_t release_kept_buffer();

}  // namespace qsim
