// buffer.hpp -- memory of one state: zeroed, aligned to a huge page, given back when dropped.
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

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    void* mapping_ = nullptr;
    std::size_t mapping_bytes_ = 0;
};

}  // namespace qsim
