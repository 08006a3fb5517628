// cpu/state/state.hpp -- one state vector in memory, in either precision.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>

#include "cpu/state/buffer.hpp"
#include "cpu/state/pages.hpp"

namespace qsim {

constexpr int kPaddedQubits = 5;  // a state fills at least one vector register of any instruction set

class State {
  public:
    State(int num_qubits, bool single);  // |0...0>; complex64 amplitudes where `single`, else complex128

    int num_qubits() const { return num_qubits_; }
    int padded_qubits() const;  // of the memory: amplitudes beyond those of num_qubits() are zero
    bool single() const { return single_; }
    void* data() const { return buffer_->data(); }
    std::size_t bytes() const { return (std::size_t{1} << num_qubits_) * (single_ ? 8 : 16); }
    const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
    PageView pages() const { return pages_.view(); }

    // Zeroes the pages not used so far. Call it before code that does not know pages reads the memory.
    void settle(int threads);
    // Marks all pages as used. Call it before code that does not know pages writes the whole memory.
    void overwrite() { pages_.mark_all(); }
    // Copies the amplitudes of `other`, which has the same width and precision.
    void copy_from(State& other, int threads);

    // call(amplitudes), which are std::complex<float>* or std::complex<double>*.
    template <class Call>
    auto visit(Call&& call) const {
        return single_ ? call(static_cast<std::complex<float>*>(data())) : call(static_cast<std::complex<double>*>(data()));
    }

  private:
    int num_qubits_;
    bool single_;
    std::shared_ptr<Buffer> buffer_;
    Pages pages_;
};

}  // namespace qsim
