// cpu/stack/stack.hpp -- a program run on many small states at once, each with its own row of numbers, and its adjoint sweep.
// Threads share out the states, or the tiles of one wide state; every sum has a fixed order.
#pragma once

#include <complex>
#include <vector>

#include "cpu/stack/op.hpp"
#include "ir/op_list.hpp"

namespace qsim {

class StackProgram {
  public:
    // `tile`: ascending qubits of a tile, the lowest kStackMinTile among them where there are as many; at most kStackTile.
    StackProgram(int num_qubits, std::vector<int> tile);

    // Appends an operator of `ops`; with `slot` its numbers come with each row. Only diagonals may have targets outside the
    // tile. Throws std::invalid_argument.
    void add(const OpList& ops, const OpHead& head, bool slot);

    // No operator comes after this; run() and overlaps() come after it.
    void finish();

    // tile = the operators in order on |0...0>, with the numbers of one row. The tile is the whole state; `scratch` holds
    // four times 2^tile_bits() numbers.
    void prepare(const std::complex<double>* row, const StackTile& tile, double* scratch) const;

    // states[r] = the same with row r of `values` ((rows, width)).
    void run(const std::complex<double>* values, index_t width, index_t rows, std::complex<double>* states, int threads) const;

    // Walks back: undoes the operators on kets and bras, last one first, and writes for each one with numbers of the row
    // sum of conj(bra[row]) ket[column] before it was undone on the bra and after on the ket, at its place in `out`.
    void overlaps(const std::complex<double>* values, index_t width, index_t rows, std::complex<double>* kets,
                  std::complex<double>* bras, std::complex<double>* out, int threads) const;

    int num_qubits() const { return num_qubits_; }
    index_t width() const { return width_; }
    bool whole() const { return outer_.empty(); }
    int tile_bits() const { return bits_; }
    index_t tile_size() const { return index_t{1} << bits_; }

  private:
    // Operators done as one: a product of 2x2 matrices on one position, or a single operator.
    struct Step {
        int begin, end;
        int bits;  // positions that may not be 0 any more once it is done: the state starts as |0...0>
    };
    void append(StackOp op, const std::vector<int>& targets);
    void close(int position);
    const double* data_of(const StackOp& op, const double* row) const { return (op.slot ? row : data_.data()) + 2 * op.offset; }
    void apply_step(const Step& step, const double* row, const StackTile& tile, double* scratch) const;

    int num_qubits_, bits_;
    index_t width_ = 0;
    std::vector<int> tile_, outer_;
    std::vector<StackOp> ops_;             // in order
    std::vector<Step> steps_;              // of chained_
    std::vector<StackOp> chained_;         // the same operators, those of one step side by side
    std::vector<std::vector<StackOp>> pending_;  // of each position: one-qubit operators that nothing has followed
    std::vector<double> data_;
    std::vector<std::int64_t> indices_;
};

}  // namespace qsim
