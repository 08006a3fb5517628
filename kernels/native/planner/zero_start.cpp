// planner/zero_start.cpp -- greedy choice of the qubits that stay |0> longest, and the operators that need none of them.
#include "planner/zero_start.hpp"

#include <algorithm>

namespace qsim {

namespace {

constexpr std::size_t kMostItems = 4096;  // looked at when qubits are chosen: what follows hardly tells them apart

struct Item {
    index_t mixed, used;
};

// Calls take(k) for each operator that may act while only qubits of `live` change, leave(k) for each other that was looked at;
// returns how many were: none of the others may act.
template <class Take, class Leave>
std::size_t scan(const std::vector<Item>& items, index_t live, Take take, Leave leave) {
    index_t blocked = 0, blocked_mix = 0;
    std::size_t k = 0;
    for (; k < items.size() && (live & ~blocked); ++k) {
        const Item& item = items[k];
        if ((item.mixed & ~live) || (item.used & blocked) || (item.mixed & blocked_mix)) {
            blocked |= item.mixed, blocked_mix |= item.used;
            leave(k);
        } else {
            take(k);
        }
    }
    return k;
}

std::vector<Item> items_of(const OpList& ops, std::size_t most) {
    std::vector<Item> out(std::min(ops.size(), most));
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = {ops.mixed(ops[k]), ops.used(ops[k])};
    return out;
}

}  // namespace

std::pair<OpList, OpList> split_live(const OpList& ops, index_t live) {
    std::pair<OpList, OpList> out;
    const auto to = [&](OpList& list) { return [&](std::size_t k) { list.append(ops, ops[k]); }; };
    const std::size_t seen = scan(items_of(ops, ops.size()), live, to(out.first), to(out.second));
    for (std::size_t k = seen; k < ops.size(); ++k) out.second.append(ops, ops[k]);
    return out;
}

std::vector<int> longest_zero_qubits(const OpList& ops, index_t qubits, int count) {
    const std::vector<Item> items = items_of(ops, kMostItems);
    std::vector<int> out;
    index_t live = ~index_t{0};
    while (static_cast<int>(out.size()) < count) {
        long most = -1;
        int best = -1;
        for (index_t rest = qubits; rest; rest &= rest - 1) {
            long done = 0;
            scan(items, live & ~(rest & -rest), [&](std::size_t k) { done += items[k].mixed != 0; }, [](std::size_t) {});
            if (done >= most) most = done, best = __builtin_ctzll(rest);  // of equals the highest: longest runs of memory
        }
        if (best < 0) break;
        out.push_back(best);
        live &= ~(index_t{1} << best);
        qubits &= live;
    }
    return out;
}

}  // namespace qsim
