// ir/op_list.hpp -- operators in order, stored as columns: the fields of Python's Op without an object for each.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bits.hpp"

namespace qsim {

using complex_t = std::complex<double>;

enum class Kind : std::uint8_t { kDiagonal, kPermutation, kHadamard, kUnitary, kParity, kPauli };

constexpr std::uint32_t kLetterX = 1, kLetterY = 2, kLetterZ = 3;  // of a Pauli string

// Whether operators of this kind only multiply each amplitude by a factor.
inline bool is_diagonal(Kind kind) { return kind == Kind::kDiagonal || kind == Kind::kParity; }

constexpr std::size_t kSharedNumbers = 1024;  // data of this many numbers and more is shared by lists, not copied

using Block = std::shared_ptr<const complex_t>;  // the first of many numbers, and who owns them

// The name of operators that wait for their numbers: their data holds, at its start, the numbers' place in a row.
constexpr const char* kSlotName = "qsim_ozaki.slot";
constexpr std::int32_t kControlOne = 1 << 30;  // set in a control's entry where the control must read 1

// Without the search for infinities of std::complex's own product.
inline complex_t times(complex_t a, complex_t b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// The number of `name` in a table that all lists share; names are for plans and messages only.
std::uint16_t intern_name(const std::string& name);
const std::string& interned_name(std::uint16_t number);

// One operator of a list; its numbers lie in the list's columns.
struct OpHead {
    Kind kind;
    std::uint8_t num_targets = 0;
    std::uint16_t num_controls = 0;
    std::uint16_t name = 0;
    std::uint32_t qubits = 0;    // first of its targets, its controls after them
    std::uint32_t num_data = 0;  // complex numbers: 4^k of a matrix, 2^k of a diagonal or a permutation, 2 of a parity or a Pauli
    std::uint64_t data = 0;      // first of its numbers; of a large operator, which of the shared blocks
    std::uint64_t permutation = 0;  // first of 2^k places of a permutation, or of k letters of a Pauli
    std::uint32_t origin = 0;       // which one it was in the list that was last numbered, of those made from it
};

class OpList {
  public:
    std::size_t size() const { return heads_.size(); }
    const OpHead& operator[](std::size_t k) const { return heads_[k]; }

    const std::int32_t* targets(const OpHead& op) const { return qubits_.data() + op.qubits; }
    const std::int32_t* controls(const OpHead& op) const { return targets(op) + op.num_targets; }
    const complex_t* data(const OpHead& op) const { return is_shared(op) ? blocks_[op.data].get() : data_.data() + op.data; }
    complex_t* own_data(const OpHead& op) { return data_.data() + op.data; }  // only of operators that are not shared
    const std::uint32_t* letters(const OpHead& op) const { return permutation(op); }
    static std::size_t num_places(const OpHead& op) {
        return op.kind == Kind::kPermutation ? op.num_data : op.kind == Kind::kPauli ? op.num_targets : 0;
    }
    static bool is_shared(const OpHead& op) { return op.num_data >= kSharedNumbers; }
    Block block(const OpHead& op) const { return is_shared(op) ? blocks_[op.data] : copy_block(data(op), op.num_data); }
    const std::uint32_t* permutation(const OpHead& op) const { return permutations_.data() + op.permutation; }

    static int control_qubit(std::int32_t entry) { return entry & ~kControlOne; }
    static int control_value(std::int32_t entry) { return (entry & kControlOne) != 0; }

    // Masks of the qubits an operator changes and of all it uses; qubits below 64.
    index_t mixed(const OpHead& op) const;
    index_t used(const OpHead& op) const;

    // Appends an operator whose qubits are targets, then control entries. Large data is copied, unless its block is given.
    void append(Kind kind, const std::int32_t* qubits, std::size_t num_targets, std::size_t num_controls, const complex_t* data,
                std::size_t num_data, const std::uint32_t* permutation, std::uint16_t name, Block block = nullptr);
    void append(const OpList& from, const OpHead& op);
    void append(const OpList& from);
    void set_qubit(const OpHead& op, std::size_t k, std::int32_t entry) { qubits_[op.qubits + k] = entry; }
    void number();  // each operator's own number is its origin from now on
    OpList with_data(const OpList& from) const;  // a copy with the numbers that `from` has where each operator comes from
    void reserve(std::size_t ops, std::size_t qubits, std::size_t data);

    // Ascending qubits that some operator changes (or uses, where `all`).
    std::vector<int> touched_qubits(bool all) const;

    static Block copy_block(const complex_t* data, std::size_t count);

  private:
    index_t target_mask(const OpHead& op) const;

    std::vector<OpHead> heads_;
    std::vector<std::int32_t> qubits_;
    std::vector<complex_t> data_;
    std::vector<Block> blocks_;
    std::vector<std::uint32_t> permutations_;
};

// Rows of a gate table: operators that differ in qubits and, where `num_values` says so, in data.
class GateTable {
  public:
    // Adds a row; returns its number. Without `values` each use brings `num_values` numbers of its own.
    std::uint32_t add(Kind kind, int num_targets, int num_controls, std::uint32_t num_values, std::vector<complex_t> values,
                      std::vector<std::uint32_t> permutation, const std::string& name);

    // Appends use k of row rows[k] on the next of `qubits` (controls, which must read 1, before targets) with the next of `values`.
    void append_to(OpList& list, const std::vector<std::uint32_t>& rows, const std::vector<std::int32_t>& qubits,
                   const complex_t* values, std::size_t num_values) const;

  private:
    struct Row {
        Kind kind;
        int num_targets, num_controls;
        std::uint32_t num_values;
        std::vector<complex_t> values;
        std::vector<std::uint32_t> permutation;
        std::uint16_t name;
    };
    std::vector<Row> rows_;
};

}  // namespace qsim
