// cpu/state/state.cpp -- how a state is made, settled and copied.
#include "cpu/state/state.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/bits.hpp"
#include "base/parallel.hpp"

namespace qsim {

State::State(int num_qubits, bool single)
    : num_qubits_(num_qubits), single_(single),
      buffer_(std::make_shared<Buffer>((std::size_t{1} << padded_qubits()) * (single ? 8 : 16))),
      pages_(static_cast<char*>(data()), buffer_->bytes(), buffer_->recycled()) {
    if (single) *static_cast<float*>(data()) = 1;
    else *static_cast<double*>(data()) = 1;
}

int State::padded_qubits() const { return std::max(num_qubits_, kPaddedQubits); }

void State::settle(int threads) {
    const PageView view = pages();
    if (view.flags && view.recycled)
        parallel_chunks(pages_.size(), threads, [&](index_t page, int) { view.open(page); });
    pages_.mark_all();
}

void State::copy_from(State& other, int threads) {
    if (bytes() != other.bytes()) throw std::invalid_argument("states differ in width or precision");
    const std::size_t chunk = std::size_t{1} << 20, size = other.bytes();
    overwrite();
    other.settle(threads);
    parallel_chunks((size + chunk - 1) / chunk, threads, [&](index_t number, int) {
        const std::size_t at = number * chunk;
        std::memcpy(static_cast<char*>(data()) + at, static_cast<char*>(other.data()) + at, std::min(chunk, size - at));
    });
}

}  // namespace qsim
