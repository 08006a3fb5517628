// planner/parities.cpp -- CX gates that undo each other around diagonals leave factors by parity; three of them on a pair are a SWAP.
//
// CX gates and diagonals wait in a list until an operator comes that mixes one of their qubits. A CX that meets itself there, with
// nothing between that does not commute but diagonals, disappears: exp(i angle Z_t) between two CX from c to t is exp(i angle Z_c Z_t).
#include <algorithm>
#include <array>
#include <optional>

#include "planner/fuse.hpp"

namespace qsim {

namespace {

constexpr std::size_t kLookBack = 1024;   // operators that a CX looks at: without a limit, time grows as their square
constexpr std::size_t kMostWaiting = 4096;
constexpr int kSmallParity = 2;           // a diagonal on so few qubits has a factor for every index

index_t mask_of(int qubit) { return index_t{1} << qubit; }

// Something that waits, on physical qubits.
struct Waiting {
    enum class Type : std::uint8_t { kCx, kParity, kDiagonal } type;
    index_t control = 0, target = 0;  // of a CX: masks of one qubit
    index_t used = 0;
    std::array<complex_t, 2> factors{1, 1};  // of a parity: where it is even and odd
    std::size_t number = 0;                  // of another diagonal: its own in the list

    bool is_cx() const { return type == Type::kCx; }
};

// The factors of a diagonal that depends on the parity of its targets alone.
std::optional<std::array<complex_t, 2>> parity_factors(const OpList& ops, const OpHead& op) {
    if (op.num_controls) return std::nullopt;
    const complex_t* data = ops.data(op);
    if (op.kind != Kind::kParity)
        for (std::size_t i = 2; i < op.num_data; ++i)
            if (data[i] != data[__builtin_popcountll(i) & 1]) return std::nullopt;
    return std::array<complex_t, 2>{data[0], data[1]};
}

class Collector {
  public:
    Collector(const OpList& ops, std::vector<int>& place)
        : ops_(ops), place_(place), cx_(intern_name("cx")), parity_(intern_name("parity")) {}

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
        index_t used = 0;
        for (int j = 0; j < count; ++j) used |= mask_of(place_[OpList::control_qubit(qubits[j])]);
        if (!is_diagonal(op.kind)) {
            emit_before(used);
        } else if (used & touched_) {
            return wait(k, used);
        }
        append_placed(out_, ops_, op, place_);
    }

    void wait(std::size_t k, index_t used) {
        Waiting diagonal{Waiting::Type::kDiagonal};
        diagonal.used = used;
        if (const auto factors = parity_factors(ops_, ops_[k])) {
            diagonal.type = Waiting::Type::kParity;
            diagonal.factors = *factors;
        } else {
            diagonal.number = diagonals_.size();
            append_placed(diagonals_, ops_, ops_[k], place_);
        }
        push(diagonal);
    }

    // CX from program qubit `control` to `target`.
    void take_cx(int control, int target) {
        Waiting cx{Waiting::Type::kCx};
        cx.control = mask_of(place_[control]), cx.target = mask_of(place_[target]);
        cx.used = cx.control | cx.target;
        bool alone = true;  // no CX and no other diagonal of its qubits lies between
        for (std::size_t j = waiting_.size(), looked = 0; j-- > 0 && looked < kLookBack; ++looked) {
            const Waiting& before = waiting_[j];
            if (before.type == Waiting::Type::kParity) continue;
            if (before.is_cx() && before.control == cx.control && before.target == cx.target) return remove(j);
            if (before.is_cx() && before.control == cx.target && before.target == cx.control) {
                if (!alone) break;
                remove(j);  // CX there and back is a CX back and a SWAP
                push(cx);
                return std::swap(place_[control], place_[target]);
            }
            if (before.used & cx.used) alone = false;
            if (before.is_cx() ? (before.control == cx.target || before.target == cx.control) : before.used & cx.target) break;
        }
        push(cx);
    }

    // Takes CX number j out of the list; the parities behind it read through it.
    void remove(std::size_t j) {
        const Waiting cx = waiting_[j];
        waiting_.erase(waiting_.begin() + j);
        for (; j < waiting_.size(); ++j)
            if (waiting_[j].type == Waiting::Type::kParity && waiting_[j].used & cx.target) waiting_[j].used ^= cx.control;
        changed_ = true;
    }

    void push(const Waiting& item) {
        if (waiting_.size() >= kMostWaiting) emit_before(~index_t{0});
        waiting_.push_back(item);
        touched_ |= item.used;
    }

    // Emits what must come before an operator that mixes the qubits of `mixed`.
    void emit_before(index_t mixed) {
        if (!(mixed & touched_)) return;
        index_t flipped = 0, read = 0;  // qubits that later CX flip, and that later diagonals and CX read
        std::vector<bool> leaves(waiting_.size(), false);
        for (std::size_t k = waiting_.size(); k-- > 0;) {
            const Waiting& item = waiting_[k];
            const index_t reads = item.is_cx() ? item.control : item.used, flips = item.target;
            leaves[k] = (reads & (mixed | flipped)) || (flips & (mixed | read));
            if (leaves[k]) read |= reads, flipped |= flips;
        }
        std::size_t left = 0;
        touched_ = 0;
        for (std::size_t k = 0; k < waiting_.size(); ++k) {
            if (leaves[k]) {
                emit(waiting_[k]);
            } else {
                touched_ |= waiting_[k].used;
                waiting_[left++] = waiting_[k];
            }
        }
        waiting_.resize(left, Waiting{Waiting::Type::kCx});
    }

    void emit(const Waiting& item) {
        static const complex_t ones[2] = {1, 1};
        static const std::uint32_t flip[2] = {1, 0};
        if (item.is_cx()) {
            const std::int32_t pair[2] = {__builtin_ctzll(item.target), __builtin_ctzll(item.control) | kControlOne};
            return out_.append(Kind::kPermutation, pair, 1, 1, ones, 2, flip, cx_);
        }
        if (item.type == Waiting::Type::kDiagonal) return out_.append(diagonals_, diagonals_[item.number]);
        std::vector<std::int32_t> targets;
        for (index_t rest = item.used; rest; rest &= rest - 1) targets.push_back(__builtin_ctzll(rest));
        const auto& [even, odd] = item.factors;
        const complex_t table[4] = {even, odd, odd, even};
        const bool small = targets.size() <= kSmallParity;
        out_.append(small ? Kind::kDiagonal : Kind::kParity, targets.data(), targets.size(), 0, table,
                    small ? std::size_t{1} << targets.size() : 2, nullptr, parity_);
    }

    const OpList& ops_;
    std::vector<int>& place_;
    std::vector<Waiting> waiting_;
    index_t touched_ = 0;  // qubits of all that waits
    OpList diagonals_;     // those that wait and are no parity
    OpList out_;
    bool changed_ = false;
    std::uint16_t cx_, parity_;
};

}  // namespace

OpList collect_parities(const OpList& ops, std::vector<int>& place) {
    std::vector<int> end = place;
    if (auto fewer = Collector(ops, end).run()) {
        place = end;
        return std::move(*fewer);
    }
    return relabel_swaps(ops, place);
}

}  // namespace qsim
