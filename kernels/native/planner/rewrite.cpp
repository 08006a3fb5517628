// planner/rewrite.cpp -- operators that need no pass: SWAPs become new names of qubits, leading one-qubit gates a product state.
#include "planner/fuse.hpp"

namespace qsim {

bool is_swap(const OpList& ops, const OpHead& op) {
    if (op.kind != Kind::kPermutation || op.num_targets != 2 || op.num_controls) return false;
    const std::uint32_t* to = ops.permutation(op);
    const complex_t* data = ops.data(op);
    return to[0] == 0 && to[1] == 2 && to[2] == 1 && to[3] == 3 && std::all_of(data, data + 4, [](complex_t z) { return z == 1.0; });
}

bool is_cx(const OpList& ops, const OpHead& op) {
    return op.kind == Kind::kPermutation && op.num_targets == 1 && op.num_controls == 1 && ops.permutation(op)[0] == 1 &&
           ops.data(op)[0] == 1.0 && ops.data(op)[1] == 1.0;
}

void append_placed(OpList& to, const OpList& from, const OpHead& op, const std::vector<int>& place) {
    to.append(from, op);
    const OpHead& moved = to[to.size() - 1];
    for (int j = 0; j < op.num_targets + op.num_controls; ++j) {
        const std::int32_t entry = from.targets(op)[j];
        to.set_qubit(moved, j, place[OpList::control_qubit(entry)] | (entry & kControlOne));
    }
}

OpList relabel_swaps(const OpList& ops, std::vector<int>& place) {
    OpList out;
    for (std::size_t k = 0; k < ops.size(); ++k) {
        const OpHead& op = ops[k];
        const std::int32_t* targets = ops.targets(op);
        if (is_swap(ops, op)) {
            std::swap(place[targets[0]], place[targets[1]]);
            continue;
        }
        append_placed(out, ops, op, place);
    }
    return out;
}

// One-qubit operators with no other before them on their qubit go into the factors, of qubits not yet touched.
static OpList absorb_into(const OpList& ops, std::vector<complex_t>& factors, std::vector<bool> touched) {
    OpList left;
    for (std::size_t k = 0; k < ops.size(); ++k) {
        const OpHead& op = ops[k];
        const std::int32_t* targets = ops.targets(op);
        Matrix2 m;
        if (op.num_targets + op.num_controls == 0) {
            for (int j = 0; j < 2; ++j) factors[j] = times(factors[j], ops.data(op)[0]);
        } else if (one_qubit_matrix(ops, op, m) && !touched[targets[0]]) {
            complex_t &low = factors[2 * targets[0]], &high = factors[2 * targets[0] + 1];
            const complex_t x = low, y = high;
            low = times(m[0], x) + times(m[1], y);
            high = times(m[2], x) + times(m[3], y);
        } else {
            left.append(ops, op);
            for (int j = 0; j < op.num_targets + op.num_controls; ++j) touched[OpList::control_qubit(targets[j])] = true;
        }
    }
    return left;
}

OpList absorb_product(const OpList& ops, std::vector<complex_t>& factors, bool basis_states_only) {
    const std::vector<complex_t> start = factors;
    std::vector<bool> touched(factors.size() / 2, false);
    OpList left = absorb_into(ops, factors, touched);
    if (!basis_states_only) return left;
    for (std::size_t q = 0; q < touched.size(); ++q) touched[q] = factors[2 * q] != 0.0 && factors[2 * q + 1] != 0.0;
    factors = start;
    return absorb_into(ops, factors, touched);
}

}  // namespace qsim
