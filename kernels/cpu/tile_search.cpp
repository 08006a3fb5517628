// tile_search.cpp -- greedy closure over many seeds: each pass takes the tile under which the most work may act at once.
#include "tile_search.hpp"

#include <algorithm>
#include <random>

namespace qsim {

namespace {

constexpr int kRandomSeeds = 12;
constexpr double kDiagonalWeight = 0.01;  // a diagonal fits any tile: it only breaks ties between them

struct Item {
    index_t mixed, used;
    std::int64_t number;
    double weight;
};

struct Scan {
    const std::vector<Item>& items;
    index_t all;
    int tile_qubits;

    // Takes what may act inside a tile grown from `tile`, of the items from `begin` on; returns its weight. Where `taken` is
    // given, marks it there; `end` is then one past the last item looked at.
    double close(std::size_t begin, index_t& tile, std::vector<char>* taken, std::size_t* end) const {
        index_t blocked = 0, blocked_mix = 0;
        double weight = 0;
        std::size_t k = begin;
        for (; k < items.size() && blocked != all; ++k) {
            const Item& item = items[k];
            bool takes = !(item.used & blocked) && !(item.mixed & blocked_mix);
            if (takes && (item.mixed & ~tile)) {
                takes = __builtin_popcountll(tile | item.mixed) <= tile_qubits;
                if (takes) tile |= item.mixed;
            }
            if (takes) weight += item.weight;
            else blocked |= item.mixed, blocked_mix |= item.used;
            if (taken) taken->push_back(takes);
        }
        if (end) *end = k;
        return weight;
    }
};

// Where to start growing: nothing, every window of neighbouring qubits, random subsets.
std::vector<index_t> seeds(int num_qubits, int tile_qubits, index_t always, std::mt19937_64& random) {
    std::vector<index_t> out{always};
    const int room = tile_qubits - __builtin_popcountll(always);
    for (int width : {room, room / 2})
        for (int first = 0; width > 0 && first + width <= num_qubits; ++first) {
            index_t tile = always;
            for (int q = first; q < num_qubits && __builtin_popcountll(tile) < tile_qubits - room + width; ++q)
                tile |= index_t{1} << q;
            out.push_back(tile);
        }
    std::vector<int> order(num_qubits);
    for (int q = 0; q < num_qubits; ++q) order[q] = q;
    for (int k = 0; k < kRandomSeeds; ++k) {
        std::shuffle(order.begin(), order.end(), random);
        index_t tile = always;
        for (int q : order)
            if (__builtin_popcountll(tile) < tile_qubits - room / 2) tile |= index_t{1} << q;
        out.push_back(tile);
    }
    return out;
}

}  // namespace

std::vector<TileChoice> search_tiles(const OpList& ops, int num_qubits, int tile_qubits, index_t always) {
    const index_t all = num_qubits >= 64 ? ~index_t{0} : (index_t{1} << num_qubits) - 1;
    std::vector<Item> items;
    items.reserve(ops.size());
    for (std::size_t k = 0; k < ops.size(); ++k) {
        const index_t mixed = ops.mixed(ops[k]);
        items.push_back({mixed, ops.used(ops[k]), static_cast<std::int64_t>(k), mixed ? 1.0 : kDiagonalWeight});
    }
    const Scan scan{items, all, tile_qubits};
    const bool whole = tile_qubits >= num_qubits;
    std::mt19937_64 random(7);  // fixed: a plan is a pure function of its input
    std::vector<TileChoice> passes;
    std::vector<char> taken;
    for (std::size_t begin = 0; begin < items.size();) {
        TileChoice best{};
        double best_weight = -1;
        for (index_t seed : whole ? std::vector<index_t>{all} : seeds(num_qubits, tile_qubits, always, random)) {
            index_t tile = seed;
            const double weight = scan.close(begin, tile, nullptr, nullptr);
            if (weight > best_weight) best_weight = weight, best.tile = seed;
        }
        taken.clear();
        std::size_t end = begin;
        scan.close(begin, best.tile, &taken, &end);
        if (std::find(taken.begin(), taken.end(), 1) == taken.end()) {  // wider than any tile: a pass of its own
            taken[0] = 1;
            best.tile = always | items[begin].mixed;
        }
        std::size_t kept = end;  // what is left moves up to the items not looked at
        for (std::size_t k = end; k-- > begin;) {
            if (taken[k - begin]) best.members.push_back(items[k].number);
            else items[--kept] = items[k];
        }
        std::reverse(best.members.begin(), best.members.end());
        begin = kept;
        passes.push_back(std::move(best));
    }
    return passes;
}

TileWork tile_work(const OpList& ops) {
    TileWork out;
    struct Line {
        int level = 0;  // sweeps already needed before what comes next on the qubit
        bool has_phase = false;
    } lines[64];
    std::vector<char> used;
    for (std::size_t k = 0; k < ops.size(); ++k) {
        const OpHead& op = ops[k];
        const int count = op.num_targets + op.num_controls;
        const std::int32_t* qubits = ops.targets(op);
        int start = 0;
        for (int j = 0; j < count; ++j) start = std::max(start, lines[OpList::control_qubit(qubits[j])].level);
        const bool diagonal = op.kind == Kind::kDiagonal;
        for (int j = 0; j < count; ++j) {
            Line& line = lines[OpList::control_qubit(qubits[j])];
            line.level = start + (!diagonal && line.has_phase);
            line.has_phase = diagonal;
        }
        if (diagonal) {
            if (static_cast<std::size_t>(start) >= used.size()) used.resize(start + 1);
            used[start] = 1;
            continue;
        }
        const double share = 1.0 / static_cast<double>(index_t{1} << std::min<int>(op.num_controls, 60));
        if (op.kind == Kind::kHadamard) {
            out.flops += 4 * op.num_targets * share;
            out.sweeps += op.num_targets / 3.0 * share;
        } else if (op.kind == Kind::kPermutation) {
            const bool swaps = op.num_targets == 2 && op.num_controls == 0 && ops.permutation(op)[1] == 2 && ops.permutation(op)[2] == 1;
            if (!swaps) out.sweeps += share;
        } else if (op.num_targets == 1 && op.num_controls == 0) {
            out.flops += 4;
            out.sweeps += 1 / 3.0;
        } else {
            out.flops += 8.0 * static_cast<double>(index_t{1} << op.num_targets) * share;
            out.sweeps += share;
        }
    }
    out.phase_layers = static_cast<int>(std::count(used.begin(), used.end(), 1));
    out.flops += 16 * out.phase_layers;
    out.sweeps += out.phase_layers;
    return out;
}

}  // namespace qsim
