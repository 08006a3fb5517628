// planner/rotations.cpp -- Clifford gates that undo each other around rotations leave rotations about Pauli strings.
//
// CX, one-qubit Clifford gates and rotations wait in a list until an operator of another kind comes to their qubits. A gate that
// comes moves back through the rotations to its like: a Clifford gate C changes a rotation about P into one about C P C^-1. CX
// meets CX, and both disappear; one-qubit gates multiply, and disappear where they make 1. What is left is written as it was.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "planner/fuse.hpp"
#include "planner/pauli.hpp"
#include "planner/waiting.hpp"

namespace qsim {

namespace {

constexpr std::size_t kLookBack = 512;  // operators that a gate looks at: without a limit, time grows as their square
constexpr std::size_t kMostWaiting = 4096;
// Costs in sweeps over a tile: of a one-qubit gate, three of which share one; of a diagonal, all of which share one; and of each
// qubit that a rotation needs in the tile.
constexpr double kGateCost = 1 / 3.0, kTableCost = 0.05, kDirectionCost = 0.08, kMostMore = 8;

index_t mask_of(int qubit) { return index_t{1} << qubit; }

using Type = Waiting::Type;

class Collector {
  public:
    Collector(const OpList& ops, std::vector<int>& place, int max_direction)
        : ops_(ops), place_(place), max_direction_(max_direction), cx_(intern_name("cx")), name_(intern_name("pauli_rotation")),
          basis_(intern_name("basis")) {}

    // Nothing where no CX disappears.
    std::optional<OpList> run() {
        for (std::size_t k = 0; k < ops_.size(); ++k) take(k);
        emit_before(~index_t{0});
        if (!changed_) return std::nullopt;
        return std::move(out_);
    }

  private:
    void take(std::size_t k) {
        const OpHead& op = ops_[k];
        const std::int32_t* qubits = ops_.targets(op);
        const int count = op.num_targets + op.num_controls;
        if (is_swap(ops_, op)) return std::swap(place_[qubits[0]], place_[qubits[1]]);
        if (is_cx(ops_, op) && OpList::control_value(qubits[1])) return take_cx(OpList::control_qubit(qubits[1]), qubits[0]);
        Matrix2 matrix;
        if (one_qubit_matrix(ops_, op, matrix)) return take_matrix(k, matrix, place_[qubits[0]]);
        if (op.kind == Kind::kHadamard && op.num_controls == 0) {
            for (int j = 0; j < count; ++j) take_matrix(k, hadamard(), place_[qubits[j]]);
            return;
        }
        index_t used = 0;
        for (int j = 0; j < count; ++j) used |= mask_of(place_[OpList::control_qubit(qubits[j])]);
        if (!is_diagonal(op.kind)) emit_before(used);
        else if (used & touched_) return take_diagonal(k, used);
        append_placed(out_, ops_, op, place_);
    }

    void take_matrix(std::size_t k, const Matrix2& matrix, int qubit) {
        if (const auto gate = clifford(matrix)) return take_clifford(*gate, qubit);
        const auto axis = axis_sum(matrix);
        if (!axis || !(touched_ & mask_of(qubit))) {
            emit_before(mask_of(qubit));
            return append_placed(out_, ops_, ops_[k], place_);
        }
        Waiting rotation(Type::kRotation);
        rotation.sum = {axis->a, axis->b, axis->letter != kLetterZ ? mask_of(qubit) : 0, axis->letter != kLetterX ? mask_of(qubit) : 0};
        push(rotation);
    }

    // A diagonal that depends on the parity of its qubits alone is a rotation about Z...Z.
    void take_diagonal(std::size_t k, index_t used) {
        const OpHead& op = ops_[k];
        const complex_t* data = ops_.data(op);
        bool parity = op.num_controls == 0;
        for (std::size_t i = 2; i < op.num_data && parity; ++i) parity = data[i] == data[__builtin_popcountll(i) & 1];
        Waiting diagonal(parity ? Type::kRotation : Type::kDiagonal);
        if (parity) {
            diagonal.sum = {(data[0] + data[1]) / 2.0, (data[0] - data[1]) / 2.0, 0, used};
        } else {
            diagonal.used = used, diagonal.number = diagonals_.size();
            append_placed(diagonals_, ops_, op, place_);
        }
        push(diagonal);
    }

    // The gate disappears with those before it on its qubit with which it makes 1, else it joins the last one: unless the
    // rotations between would cost more then than it saves.
    void take_clifford(const Clifford& gate, int qubit) {
        Waiting item(Type::kClifford);
        item.used = mask_of(qubit), item.qubit = qubit, item.gate = gate;
        std::vector<std::size_t> others;  // gates of the qubit, last one first
        Waiting moved = item;             // the gate after those
        Clifford& product = moved.gate;
        std::optional<Clifford> joined;   // with the last one alone
        double more = 0;
        for (std::size_t j = waiting_.size(), looked = 0; j-- > 0 && looked < kLookBack && more < kMostMore; ++looked) {
            const Waiting& before = waiting_[j];
            if (before.type == Type::kRotation) {
                more += cost_after(before.sum, product, qubit) - cost_of(before.sum);
            } else if (before.type == Type::kClifford && before.qubit == qubit) {
                const auto both = clifford(multiply(product.matrix, before.gate.matrix));
                if (!both) break;  // rounding has added up
                product = *both;
                others.push_back(j);
                if (product.is_identity() && more <= kGateCost * static_cast<double>(others.size() + 1)) return join(others, item, product);
                if (others.size() == 1 && more <= kGateCost) joined = product;
            } else if (moved.action().meets(before.action())) {
                break;
            }
        }
        if (!joined) return push(item);
        others.resize(1);
        join(others, item, *joined);
    }

    // In sweeps over a tile.
    double cost_of(const PauliSum& sum) const {
        const int weight = __builtin_popcountll(sum.x | sum.z), direction = __builtin_popcountll(sum.x);
        if (!direction) return weight <= 2 ? kTableCost : 1;
        if (weight == 1) return kGateCost;
        return 1 + kDirectionCost * direction + (direction > max_direction_ ? 2 * kGateCost * direction : 0);
    }
    double cost_after(PauliSum sum, const Clifford& gate, int qubit) const {
        conjugate(sum, gate, qubit);
        return cost_of(sum);
    }

    // The Clifford gate `last` moves back through the rotations to the gates `others`, the last one first: together they are `product`.
    void join(const std::vector<std::size_t>& others, const Waiting& last, const Clifford& product) {
        Clifford after = last.gate;
        std::size_t end = waiting_.size();
        for (const std::size_t j : others) {
            for (std::size_t i = j + 1; i < end; ++i)
                if (waiting_[i].type == Type::kRotation) conjugate(waiting_[i].sum, after, last.qubit);
            if (const auto both = clifford(multiply(after.matrix, waiting_[j].gate.matrix))) after = *both;
            end = j;
        }
        if (!product.is_identity()) {
            waiting_[others.back()].gate = product;
            return;
        }
        for (const std::size_t j : others) waiting_.erase(waiting_.begin() + j);
        const complex_t phase = product.matrix[0];
        if (phase != 1.0) out_.append(Kind::kDiagonal, nullptr, 0, 0, &phase, 1, nullptr, name_);
    }

    // CX from program qubit `control` to `target`.
    void take_cx(int control, int target) {
        Waiting cx(Type::kCx);
        cx.control = mask_of(place_[control]), cx.target = mask_of(place_[target]);
        const Waiting::Action action = cx.action();
        bool alone = true;  // nothing on its qubits but rotations lies between
        for (std::size_t j = waiting_.size(), looked = 0; j-- > 0 && looked < kLookBack; ++looked) {
            const Waiting& before = waiting_[j];
            if (before.type == Type::kRotation) continue;
            if (before.type == Type::kCx && before.control == cx.control && before.target == cx.target) return remove(j);
            if (before.type == Type::kCx && before.control == cx.target && before.target == cx.control) {
                if (!alone) break;
                remove(j);  // CX there and back is a CX back and a SWAP
                push(cx);
                return std::swap(place_[control], place_[target]);
            }
            if (before.action().all() & action.all()) alone = false;
            if (action.meets(before.action())) break;
        }
        push(cx);
    }

    // Takes CX number j out of the list: it moves forward through the rotations behind it, to its like.
    void remove(std::size_t j) {
        const Waiting cx = waiting_[j];
        waiting_.erase(waiting_.begin() + j);
        for (; j < waiting_.size(); ++j)
            if (waiting_[j].type == Type::kRotation) conjugate_cx(waiting_[j].sum, cx.control, cx.target);
        changed_ = true;
    }

    void push(const Waiting& item) {
        if (waiting_.size() >= kMostWaiting) emit_before(~index_t{0});
        waiting_.push_back(item);
        touched_ |= item.action().all();
    }

    // Emits what must come before an operator on the qubits of `mixed`.
    void emit_before(index_t mixed) {
        if (!(mixed & touched_)) return;
        Waiting::Action later{0, 0, mixed};
        std::vector<bool> leaves(waiting_.size(), false);
        for (std::size_t k = waiting_.size(); k-- > 0;) {
            const Waiting::Action action = waiting_[k].action();
            leaves[k] = action.meets(later);
            if (leaves[k]) later |= action;
        }
        std::size_t left = 0;
        touched_ = 0;
        for (std::size_t k = 0; k < waiting_.size(); ++k) {
            if (leaves[k]) {
                emit(waiting_[k]);
            } else {
                touched_ |= waiting_[k].action().all();
                waiting_[left++] = waiting_[k];
            }
        }
        waiting_.resize(left, Waiting(Type::kCx));
    }

    void emit(const Waiting& item) {
        static const complex_t ones[2] = {1, 1};
        static const std::uint32_t flip[2] = {1, 0};
        switch (item.type) {
            case Type::kCx: {
                const std::int32_t pair[2] = {__builtin_ctzll(item.target), __builtin_ctzll(item.control) | kControlOne};
                return out_.append(Kind::kPermutation, pair, 1, 1, ones, 2, flip, cx_);
            }
            case Type::kClifford: return emit_matrix(item.qubit, item.gate.matrix, basis_);
            case Type::kDiagonal: return out_.append(diagonals_, diagonals_[item.number]);
            case Type::kRotation: return emit_rotation(item.sum);
        }
    }

    void emit_matrix(std::int32_t qubit, const Matrix2& m, std::uint16_t name) {
        if (m[1] == 0.0 && m[2] == 0.0) {
            const complex_t diagonal[2] = {m[0], m[3]};
            return out_.append(Kind::kDiagonal, &qubit, 1, 0, diagonal, 2, nullptr, name);
        }
        out_.append(Kind::kUnitary, &qubit, 1, 0, m.data(), 4, nullptr, name);
    }

    void emit_rotation(const PauliSum& sum) {
        const auto& [a, b, x, z] = sum;
        std::int32_t targets[64];
        std::uint32_t letters[64];
        int count = 0;
        for (index_t rest = x | z; rest; rest &= rest - 1, ++count) {
            targets[count] = __builtin_ctzll(rest);
            letters[count] = !(x >> targets[count] & 1) ? kLetterZ : z >> targets[count] & 1 ? kLetterY : kLetterX;
        }
        if (!x) return emit_parity(targets, count, a + b, a - b);
        if (count == 1) return emit_matrix(targets[0], axis_matrix(letters[0], a, b), name_);
        if (__builtin_popcountll(x) <= max_direction_) {
            const complex_t data[2] = {a, b};
            return out_.append(Kind::kPauli, targets, count, 0, data, 2, letters, name_);
        }
        for (int j = 0; j < count; ++j)
            if (letters[j] != kLetterZ) emit_matrix(targets[j], to_z(letters[j]), basis_);
        emit_parity(targets, count, a + b, a - b);
        for (int j = 0; j < count; ++j)
            if (letters[j] != kLetterZ) {
                const Matrix2 m = to_z(letters[j]);
                emit_matrix(targets[j], {std::conj(m[0]), std::conj(m[2]), std::conj(m[1]), std::conj(m[3])}, basis_);
            }
    }

    // V with V P V^-1 = Z for P = X or Y.
    static Matrix2 to_z(std::uint32_t letter) {
        const double r = hadamard()[0].real();
        return letter == kLetterX ? hadamard() : Matrix2{r, complex_t(0, -r), complex_t(0, -r), r};
    }

    void emit_parity(const std::int32_t* targets, int count, complex_t even, complex_t odd) {
        const complex_t table[4] = {even, odd, odd, even};
        const bool small = count <= 2;  // a diagonal has a factor for every index
        out_.append(small ? Kind::kDiagonal : Kind::kParity, targets, count, 0, table, small ? std::size_t{1} << count : 2, nullptr, name_);
    }

    const OpList& ops_;
    std::vector<int>& place_;
    int max_direction_;
    std::vector<Waiting> waiting_;
    index_t touched_ = 0;  // qubits of all that waits
    OpList diagonals_;     // those that wait and are no rotation
    OpList out_;
    bool changed_ = false;
    std::uint16_t cx_, name_, basis_;
};

}  // namespace

OpList collect_rotations(const OpList& ops, std::vector<int>& place, int max_direction) {
    bool any_cx = false;
    for (std::size_t k = 0; k < ops.size() && !any_cx; ++k) any_cx = is_cx(ops, ops[k]);
    if (!any_cx) return relabel_swaps(ops, place);
    std::vector<int> end = place;
    if (auto fewer = Collector(ops, end, max_direction).run()) {
        place = end;
        return std::move(*fewer);
    }
    return relabel_swaps(ops, place);
}

}  // namespace qsim
