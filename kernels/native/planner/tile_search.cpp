// planner/tile_search.cpp -- greedy closure over many seeds: each pass takes the tile under which the most work may act at once.
#include "planner/tile_search.hpp"

#include <algorithm>
#include <random>

#include "planner/pass_search.hpp"
#include "planner/tuning.hpp"

namespace qsim {

namespace {

constexpr int kRandomSeeds = 12;
constexpr int kParitiesOfSweep = 4;  // that the CPU does at once
constexpr double kDiagonalWeight = 0.01;  // a diagonal fits any tile: it only breaks ties between them

// Where to start growing: nothing, every window of neighbouring qubits, random subsets.
std::vector<index_t> seeds(const Scan& scan, index_t previous, std::mt19937_64& random) {
    const index_t begin = scan.fixed();
    std::vector<index_t> out{begin};
    const int room = scan.tile_qubits - count_of(begin);
    const auto grow = [&](index_t tile, int q, int limit) {
        const index_t grown = tile | index_t{1} << q;
        return count_of(grown) <= limit && scan.fits(grown, previous) ? grown : tile;
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
        for (; part && count_of(out) < count; part &= part - 1) out |= part & -part;
    return out;
}

// Says for each pass which qubits of its tile are the lowest meanwhile: those of the pass before, or others that both tiles hold.
void place_lines(std::vector<TileChoice>& passes, const Scan& scan) {
    index_t before = scan.before, line = scan.line;
    for (TileChoice& pass : passes) {
        if (scan.moves) line = lowest(pass.tile & before, count_of(line), line);
        pass.line = line;
        before = pass.tile;
    }
}

// Items and scans that a search has looked at.
struct Looked {
    std::size_t items = 0, scans = 0;
};

// Passes over all of `items`, each grown from the tile that choose(items left, their count, tile before, number of the pass) gives.
template <class Choose>
std::vector<TileChoice> passes_by(std::vector<Item> items, const Scan& scan, Choose choose) {
    std::vector<TileChoice> passes;
    std::vector<char> taken;
    std::size_t looked_at = 0;
    index_t previous = scan.before;
    for (std::size_t begin = 0; begin < items.size();) {
        const Item* from = items.data() + begin;
        const std::size_t count = items.size() - begin;
        TileChoice best{choose(from, count, previous, passes.size()), 0, {}};
        taken.clear();
        scan.close(from, count, previous, best.tile, 0, &taken, looked_at);
        if (scan.moves) best.tile = with_line(best.tile, previous, scan.line);
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
        if (scan.moves) previous = best.tile;
        passes.push_back(std::move(best));
    }
    place_lines(passes, scan);
    return passes;
}

// Passes over all of `items`, each with the tile under which the most work may act.
std::vector<TileChoice> greedy(const std::vector<Item>& items, const Scan& scan, Looked& looked) {
    std::mt19937_64 random(7);  // fixed: a plan is a pure function of its input
    return passes_by(items, scan, [&](const Item* from, std::size_t count, index_t previous, std::size_t) {
        double best_weight = -1;
        index_t best = scan.fixed();
        for (index_t seed : seeds(scan, previous, random)) {
            index_t tile = seed;
            const double weight = scan.close(from, count, previous, tile, 0, nullptr, looked.items);
            ++looked.scans;
            if (weight > best_weight) best_weight = weight, best = seed;
        }
        return best;
    });
}

std::vector<index_t> tiles_of(const std::vector<TileChoice>& passes) {
    std::vector<index_t> out;
    for (const TileChoice& pass : passes) out.push_back(pass.tile);
    return out;
}

// Passes over `items`: greedy ones, or such as take whatever comes next where these are fewer, or fewer than `most` by a longer
// search where that many take long enough.
std::vector<TileChoice> search(const std::vector<Item>& items, const std::vector<Item>& joined, const Scan& scan, double pass_seconds,
                               std::size_t most) {
    Looked looked;
    std::vector<index_t> tiles = tiles_of(greedy(joined, scan, looked));
    const auto next = [&](const Item*, std::size_t, index_t, std::size_t) { return scan.fixed(); };
    const std::vector<index_t> plain = tiles_of(passes_by(items, scan, next));
    if (plain.size() < tiles.size()) tiles = plain;
    most = std::min(most, tiles.size());
    const double seconds = std::min(kShareOfRun * pass_seconds * static_cast<double>(most), kLongestSeconds);
    const double scans = static_cast<double>(std::max<std::size_t>(looked.scans, 1));
    const Budget budget{seconds / kSecondsPerItem, static_cast<double>(looked.items) / scans};
    const std::vector<index_t> fewer = fewer_passes(joined, scan, most, budget);
    if (!fewer.empty()) tiles = fewer;
    const auto chosen = [&](const Item*, std::size_t, index_t, std::size_t k) { return k < tiles.size() ? tiles[k] : scan.fixed(); };
    return passes_by(items, scan, chosen);
}

}  // namespace

double mixes_of_pair(const complex_t* matrix) {
    for (int entry : {1, 2, 4, 7, 8, 11, 13, 14})
        if (matrix[entry] != 0.0) return kDensePair;
    return 1;
}

std::vector<TileChoice> search_tiles(const OpList& ops, int num_qubits, const TileRules& rules) {
    const index_t all = num_qubits >= 64 ? ~index_t{0} : (index_t{1} << num_qubits) - 1;
    std::vector<Item> items;
    bool wide = false;
    for (std::size_t k = 0; k < ops.size(); ++k) {
        const index_t mixed = ops.mixed(ops[k]), used = ops.used(ops[k]);
        items.push_back({mixed, used, static_cast<std::int64_t>(k), mixed ? 1.0 : kDiagonalWeight});
        wide |= count_of(mixed | rules.line) > rules.tile_qubits;
    }
    Scan scan{all, num_qubits, rules.tile_qubits, rules.line, rules.line, false};
    const auto whole = [&](const Item*, std::size_t, index_t, std::size_t) { return all; };
    if (rules.tile_qubits >= num_qubits) return passes_by(items, scan, whole);
    Looked looked;
    if (wide) return greedy(items, scan, looked);
    const std::vector<Item> joined = joined_items(items);
    std::vector<TileChoice> passes = search(items, joined, scan, rules.moves ? 0 : rules.pass_seconds, items.size());
    if (!rules.moves) return passes;
    // qubits move only where it saves a pass: those that stay leave a loop's body with one plan
    scan.moves = true, scan.before = rules.before ? rules.before : rules.line;
    if (passes.size() <= fewest_passes(joined, scan)) return passes;
    std::vector<TileChoice> moving = search(items, joined, scan, rules.pass_seconds, passes.size());
    return moving.size() < passes.size() ? moving : passes;
}

TileWork tile_work(const OpList& ops) {
    TileWork out;
    struct Line {
        int level = 0;  // sweeps already needed before what comes next on the qubit
        bool has_phase = false;
    } lines[64];
    std::vector<char> used;  // levels with diagonals
    std::vector<int> parities;
    for (std::size_t k = 0; k < ops.size(); ++k) {
        const OpHead& op = ops[k];
        const int count = op.num_targets + op.num_controls;
        const std::int32_t* qubits = ops.targets(op);
        int start = 0;
        for (int j = 0; j < count; ++j) start = std::max(start, lines[OpList::control_qubit(qubits[j])].level);
        const bool diagonal = is_diagonal(op.kind);
        for (int j = 0; j < count; ++j) {
            Line& line = lines[OpList::control_qubit(qubits[j])];
            line.level = start + (!diagonal && line.has_phase);
            line.has_phase = diagonal;
        }
        if (diagonal) {
            if (static_cast<std::size_t>(start) >= used.size()) used.resize(start + 1), parities.resize(start + 1);
            if (op.kind == Kind::kParity) ++parities[start], out.mixes += 1;  // a GPU's gate on every amplitude
            else used[start] = 1;
            continue;
        }
        const double share = 1.0 / static_cast<double>(index_t{1} << std::min<int>(op.num_controls, 60));
        if (op.kind == Kind::kHadamard) {
            out.flops += 4 * op.num_targets * share;
            out.sweeps += op.num_targets / 3.0 * share;
            out.mixes += op.num_targets * share;
        } else if (op.kind == Kind::kPauli) {
            const bool joins = k && ops[k - 1].kind == Kind::kPauli && ops.mixed(ops[k - 1]) == ops.mixed(op);  // the sweep before
            out.flops += joins ? 0 : 8;
            out.sweeps += joins ? 0 : 1;
            out.mixes += 1;
        } else if (op.kind == Kind::kPermutation) {
            const bool swaps = op.num_targets == 2 && op.num_controls == 0 && ops.permutation(op)[1] == 2 && ops.permutation(op)[2] == 1;
            if (!swaps) out.sweeps += share, out.mixes += share;
        } else if (op.num_targets == 1 && op.num_controls == 0) {
            out.flops += 4;
            out.sweeps += 1 / 3.0;
            out.mixes += 1;
        } else {
            const double flops = 8.0 * static_cast<double>(index_t{1} << op.num_targets) * share;
            out.flops += flops;
            out.sweeps += share;
            if (op.num_targets > 2) out.wide += 1, out.wide_flops += flops;
            else out.mixes += (op.num_targets == 2 ? mixes_of_pair(ops.data(op)) : 1) * share;
        }
    }
    out.phase_layers = static_cast<int>(std::count(used.begin(), used.end(), 1));
    int sweeps = out.phase_layers;
    for (const int count : parities) sweeps += (count + kParitiesOfSweep - 1) / kParitiesOfSweep;
    out.flops += 16 * out.phase_layers + 8 * (sweeps - out.phase_layers);
    out.sweeps += sweeps;
    return out;
}

}  // namespace qsim
