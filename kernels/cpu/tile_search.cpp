// tile_search.cpp -- greedy closure over many seeds: each pass takes the tile under which the most work may act at once.
#include "tile_search.hpp"

#include <algorithm>
#include <random>

namespace qsim {

namespace {

constexpr int kRandomSeeds = 12;
constexpr double kDiagonalWeight = 0.01;  // a diagonal fits any tile: it only breaks ties between them
constexpr std::size_t kBeam = 8;
constexpr double kSecondsPerItem = 2.5e-9;  // of looking at one item (EPYC 9004, 2026-11)
constexpr double kShareOfRun = 0.1;         // of the time of all passes that a search for fewer may take

struct Item {
    index_t mixed, used;
    std::int64_t number;
    double weight;
};

struct Scan {
    index_t all;
    int num_qubits, tile_qubits;
    index_t line;  // the lowest qubits at the start
    bool moves;    // a pass may bring others of its tile there

    bool fits(index_t tile, index_t previous) const {
        return __builtin_popcountll(tile) <= tile_qubits && __builtin_popcountll(tile & ~previous) <= tile_qubits - __builtin_popcountll(line);
    }

    // Takes what may act inside a tile grown from `tile`, of `count` items from `items` on; returns its weight. The tile shares as
    // many qubits as a line has with `previous`: with the tile before, or with the line itself where nothing moves. Where `taken`
    // is given, appends there for each item that was looked at whether it is taken.
    double close(const Item* items, std::size_t count, index_t previous, index_t& tile, std::vector<char>* taken,
                 std::size_t* looked_at) const {
        index_t blocked = 0, blocked_mix = 0;
        double weight = 0;
        std::size_t k = 0;
        for (; k < count && blocked != all; ++k) {
            const Item& item = items[k];
            bool takes = !(item.used & blocked) && !(item.mixed & blocked_mix);
            if (takes && (item.mixed & ~tile)) {
                takes = fits(tile | item.mixed, previous);
                if (takes) tile |= item.mixed;
            }
            if (takes) weight += item.weight;
            else blocked |= item.mixed, blocked_mix |= item.used;
            if (taken) taken->push_back(takes);
        }
        *looked_at += k;
        return weight;
    }
};

// Where to start growing: nothing, every window of neighbouring qubits, random subsets.
std::vector<index_t> seeds(const Scan& scan, index_t previous, std::mt19937_64& random) {
    const index_t begin = scan.moves ? 0 : scan.line;
    std::vector<index_t> out{begin};
    const int room = scan.tile_qubits - __builtin_popcountll(begin);
    const auto grow = [&](index_t tile, int q, int limit) {
        const index_t grown = tile | index_t{1} << q;
        return __builtin_popcountll(grown) <= limit && scan.fits(grown, previous) ? grown : tile;
    };
    for (int width : {room, room / 2})
        for (int first = 0; width > 0 && first + width <= scan.num_qubits; ++first) {
            index_t tile = begin;
            for (int q = first; q < scan.num_qubits; ++q) tile = grow(tile, q, scan.tile_qubits - room + width);
            out.push_back(tile);
        }
    std::vector<int> order(scan.num_qubits);
    for (int q = 0; q < scan.num_qubits; ++q) order[q] = q;
    for (int k = 0; k < kRandomSeeds; ++k) {
        std::shuffle(order.begin(), order.end(), random);
        index_t tile = begin;
        for (int q : order) tile = grow(tile, q, scan.tile_qubits - room / 2);
        out.push_back(tile);
    }
    return out;
}

// `mask` with its lowest members up to `count`, those of `first` before others.
index_t lowest(index_t mask, int count, index_t first) {
    index_t out = 0;
    for (index_t part : {mask & first, mask & ~first})
        for (; part && __builtin_popcountll(out) < count; part &= part - 1) out |= part & -part;
    return out;
}

// The tile with as many qubits of `previous` as a line has.
index_t with_line(index_t tile, index_t previous, index_t line) {
    while (__builtin_popcountll(tile & previous) < __builtin_popcountll(line)) {
        const index_t others = previous & ~tile, wanted = others & line ? others & line : others;
        tile |= wanted & -wanted;
    }
    return tile;
}

// Passes over all of `items`: with the `given` tiles first, then each with the tile under which the most work may act.
// `looked_at` counts the items that the search looked at.
std::vector<TileChoice> passes_of(std::vector<Item> items, const Scan& scan, const std::vector<index_t>& given, std::size_t& looked_at) {
    const bool whole = scan.tile_qubits >= scan.num_qubits;
    std::mt19937_64 random(7);  // fixed: a plan is a pure function of its input
    std::vector<TileChoice> passes;
    std::vector<char> taken;
    index_t previous = scan.line, line = scan.line;
    for (std::size_t begin = 0; begin < items.size();) {
        const Item* from = items.data() + begin;
        const std::size_t count = items.size() - begin;
        TileChoice best{};
        if (passes.size() < given.size()) {
            best.tile = given[passes.size()];
        } else {
            double best_weight = -1;
            for (index_t seed : whole ? std::vector<index_t>{scan.all} : seeds(scan, previous, random)) {
                index_t tile = seed;
                const double weight = scan.close(from, count, previous, tile, nullptr, &looked_at);
                if (weight > best_weight) best_weight = weight, best.tile = seed;
            }
        }
        taken.clear();
        index_t grown = best.tile;
        scan.close(from, count, previous, grown, &taken, &looked_at);
        best.tile = scan.moves ? with_line(grown, previous, line) : grown;
        if (std::find(taken.begin(), taken.end(), 1) == taken.end()) {  // wider than any tile: a pass of its own
            taken[0] = 1;
            best.tile = scan.line | from->mixed;
        }
        std::size_t kept = begin + taken.size();  // what is left moves up to the items not looked at
        for (std::size_t k = taken.size(); k-- > 0;) {
            if (taken[k]) best.members.push_back(from[k].number);
            else items[--kept] = from[k];
        }
        std::reverse(best.members.begin(), best.members.end());
        begin = kept;
        line = best.line = lowest(best.tile & previous, __builtin_popcountll(scan.line), line);
        if (scan.moves) previous = best.tile;
        passes.push_back(std::move(best));
    }
    return passes;
}

// What is left after some passes.
struct Branch {
    std::vector<Item> left;
    std::vector<index_t> tiles;
    index_t previous = 0;
    double done = 0;
};

struct Extension {
    double done;
    const Branch* branch;
    index_t tile;
};

// The tiles of fewer than `limit` passes over `items`, or none: the kBeam sets of passes that did the most work so far go on.
std::vector<index_t> fewer_passes(const std::vector<Item>& items, const Scan& scan, std::size_t limit) {
    std::mt19937_64 random(7);
    std::vector<Branch> beam(1), next;
    beam[0] = {items, {}, scan.line, 0};
    std::vector<char> taken;
    std::size_t looked_at = 0;
    for (std::size_t depth = 1; depth < limit; ++depth) {
        std::vector<Extension> options;
        for (const Branch& branch : beam) {
            for (index_t start : seeds(scan, branch.previous, random)) {
                index_t tile = start;
                const double weight = scan.close(branch.left.data(), branch.left.size(), branch.previous, tile, nullptr, &looked_at);
                options.push_back({branch.done + weight, &branch, start});
            }
        }
        std::stable_sort(options.begin(), options.end(), [](const Extension& x, const Extension& y) { return x.done > y.done; });
        next.clear();
        std::vector<std::pair<double, std::size_t>> seen;  // work done and left: equal ones are most often the same
        for (const Extension& option : options) {
            if (next.size() == kBeam) break;
            const Branch& before = *option.branch;
            Branch branch{{}, before.tiles, before.previous, option.done};
            branch.tiles.push_back(option.tile);
            index_t tile = option.tile;
            taken.clear();
            scan.close(before.left.data(), before.left.size(), before.previous, tile, &taken, &looked_at);
            for (std::size_t k = 0; k < before.left.size(); ++k)
                if (k >= taken.size() || !taken[k]) branch.left.push_back(before.left[k]);
            if (branch.left.empty()) return branch.tiles;
            const std::pair<double, std::size_t> key{option.done, branch.left.size()};
            if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
            seen.push_back(key);
            if (scan.moves) branch.previous = with_line(tile, before.previous, scan.line);
            next.push_back(std::move(branch));
        }
        beam.swap(next);
    }
    return {};
}

// Greedy passes over `items`, or fewer where a longer search for them pays; it looks at `mixing` items only.
std::vector<TileChoice> search(const std::vector<Item>& items, const std::vector<Item>& mixing, const Scan& scan, double pass_seconds) {
    std::size_t looked_at = 0;
    std::vector<TileChoice> passes = passes_of(items, scan, {}, looked_at);
    const double cost = kBeam * kSecondsPerItem * static_cast<double>(looked_at);
    if (passes.size() < 3 || cost > kShareOfRun * pass_seconds * static_cast<double>(passes.size())) return passes;
    const std::vector<index_t> tiles = fewer_passes(mixing, scan, passes.size());
    if (tiles.empty()) return passes;
    std::vector<TileChoice> fewer = passes_of(items, scan, tiles, looked_at);
    return fewer.size() < passes.size() ? fewer : passes;
}

}  // namespace

std::vector<TileChoice> search_tiles(const OpList& ops, int num_qubits, const TileRules& rules) {
    const index_t all = num_qubits >= 64 ? ~index_t{0} : (index_t{1} << num_qubits) - 1;
    std::vector<Item> items, mixing;
    bool wide = false;
    for (std::size_t k = 0; k < ops.size(); ++k) {
        const index_t mixed = ops.mixed(ops[k]), used = ops.used(ops[k]);
        items.push_back({mixed, used, static_cast<std::int64_t>(k), mixed ? 1.0 : kDiagonalWeight});
        wide |= __builtin_popcountll(mixed | rules.line) > rules.tile_qubits;
        if (mixed || (used & (used - 1))) mixing.push_back(items.back());  // a phase of one qubit goes with its neighbours
    }
    Scan scan{all, num_qubits, rules.tile_qubits, rules.line, false};
    std::vector<TileChoice> passes = search(items, mixing, scan, wide ? 0 : rules.pass_seconds);
    if (!rules.moves || wide || passes.size() < 2) return passes;
    scan.moves = true;  // only where it saves a pass: qubits that stay leave a loop's body with one plan
    std::vector<TileChoice> moving = search(items, mixing, scan, rules.pass_seconds);
    return moving.size() < passes.size() ? moving : passes;
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
