// planner/pass_search.cpp -- beams of passes: tiles grown from windows of neighbours, or improved by exchanging qubits.
//
// Two kinds of circuits want two kinds of tiles. Where gates join neighbours, windows of them are best, and what matters is which
// windows follow each other: a wide beam. Where gates join any qubits, a good tile has to be searched for: it is climbed to, by
// leaving out a few of its qubits and growing it again by others. A pass less may save all of its time, so rounds of both follow
// each other as long as they may take a share of the run.
#include "planner/pass_search.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace qsim {

namespace {

constexpr int kDropped = 3;          // qubits that a climbing tile exchanges at once, at most
constexpr std::size_t kCloses = 40;  // scans of a climb, about
constexpr int kPatience = 30;        // exchanges in a row that gain nothing end a climb

struct Round {
    std::size_t beam;  // sets of passes that go on
    int windows;       // tiles grown from windows that are taken or climbed from, the best ones
    int climbs;        // random tiles to climb from
    bool climb;        // whether any tile climbs
    double early;      // by how much more an operator counts that most others wait for, than one that none waits for
};

constexpr int kAll = 1 << 20;

// Each kind in order of what it costs; the figures are from circuits of 22 to 33 qubits, 2026-11.
constexpr Round kWindowRounds[] = {{8, kAll, 0, false, 0}, {16, kAll, 0, false, 0.25}, {32, kAll, 0, false, 0.25}};
constexpr Round kClimbRounds[] = {{1, 0, 2, true, 0},     {1, 0, 6, true, 0},   {1, 0, 16, true, 0},
                                  {1, 16, 16, true, 0.3}, {4, 4, 12, true, 0}, {4, 16, 32, true, 0}};
constexpr int kFailures = 4;  // after so many rounds in a row that find nothing, no dearer one is tried
constexpr double kNear = 0.1;  // of all qubits: operators that join qubits no farther apart, on average, want windows first

// The operators left after some passes.
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

struct Start {
    double weight;
    index_t tile;
};

// One round's way to extend a branch by a pass.
struct Grower {
    const Scan& scan;
    const Round& round;
    std::mt19937_64& random;
    std::vector<char>& taken;
    std::size_t& looked_at;

    double close(const Branch& branch, index_t& tile, index_t barred) const {
        return scan.close(branch.left.data(), branch.left.size(), branch.previous, tile, barred, nullptr, looked_at);
    }

    index_t with(index_t tile, index_t qubit, index_t previous) const { return scan.fits(tile | qubit, previous) ? tile | qubit : tile; }

    // Tiles grown from all windows of neighbouring qubits, as wide as a tile has room and half as wide, best first.
    std::vector<Start> windows(const Branch& branch) const {
        std::vector<Start> out;
        const int room = scan.tile_qubits - count_of(scan.fixed());
        for (int width : {room, room / 2})
            for (int first = 0; first < scan.num_qubits; ++first) {
                index_t tile = scan.fixed();
                for (int q = first, left = width; q < scan.num_qubits && left > 0; ++q) {
                    const index_t wider = with(tile, index_t{1} << q, branch.previous);
                    left -= wider != tile;
                    tile = wider;
                }
                const double weight = close(branch, tile, 0);
                out.push_back({weight, tile});
            }
        std::stable_sort(out.begin(), out.end(), [](const Start& x, const Start& y) { return x.weight > y.weight; });
        return out;
    }

    Start random_start(const Branch& branch, bool empty) const {
        index_t tile = scan.fixed();
        const int room = scan.tile_qubits - count_of(scan.line);
        for (int k = empty ? 0 : 1 + below(random, std::max(room - 2, 1)); k > 0; --k)
            tile = with(tile, index_t{1} << below(random, scan.num_qubits), branch.previous);
        const double weight = close(branch, tile, 0);
        return {weight, tile};
    }

    // `tile` with random qubits for which there is room.
    index_t filled(index_t tile, index_t previous) const {
        while (count_of(tile) < scan.tile_qubits) {
            const bool room = count_of(tile & ~previous) < scan.tile_qubits - count_of(scan.line);
            const index_t qubit = any_of((room ? scan.all : previous) & ~tile, random);
            if (!qubit) break;
            tile |= qubit;
        }
        return tile;
    }

    // For each qubit of `tile` the weight of what acts on it there.
    std::array<double, 64> shares(const Branch& branch, index_t tile) const {
        std::array<double, 64> out{};
        taken.clear();
        scan.close(branch.left.data(), branch.left.size(), branch.previous, tile, ~tile, &taken, looked_at);
        for (std::size_t k = 0; k < taken.size(); ++k)
            for (index_t m = taken[k] ? branch.left[k].mixed : 0; m; m &= m - 1) out[__builtin_ctzll(m)] += branch.left[k].weight;
        return out;
    }

    // Exchanges qubits for others as long as that gains; of two that might go, the one goes on which less acts.
    Start climbed(const Branch& branch, Start best) const {
        best.tile = filled(best.tile, branch.previous);
        std::array<double, 64> share = shares(branch, best.tile);
        for (int idle = 0; idle < kPatience;) {
            index_t tile = best.tile, dropped = 0;
            for (int k = below(random, kDropped); k >= 0; --k) {
                const index_t free = tile & ~dropped & ~scan.fixed(), one = any_of(free, random), other = any_of(free, random);
                if (free) dropped |= share[__builtin_ctzll(other)] < share[__builtin_ctzll(one)] ? other : one;
            }
            tile &= ~dropped;
            const double weight = close(branch, tile, dropped);
            idle = weight > best.weight ? 0 : idle + 1;
            if (weight < best.weight) continue;
            best = {weight, filled(tile, branch.previous)};
            share = shares(branch, best.tile);
        }
        return best;
    }

    void extend(const Branch& branch, std::vector<Extension>& options) const {
        std::vector<Start> starts;
        if (round.windows) starts = windows(branch);
        if (starts.size() > static_cast<std::size_t>(round.windows)) starts.resize(round.windows);
        for (int k = 0; k < round.climbs; ++k) starts.push_back(random_start(branch, k == 0));
        for (const Start& start : starts) {
            const Start end = round.climb ? climbed(branch, start) : start;
            options.push_back({branch.done + end.weight, &branch, end.tile});
        }
    }
};

// `branch` after one more pass.
Branch after_pass(const Branch& branch, const Extension& option, const Scan& scan, std::vector<char>& taken, std::size_t& looked_at) {
    Branch out{{}, branch.tiles, branch.previous, option.done};
    index_t tile = option.tile;
    taken.clear();
    scan.close(branch.left.data(), branch.left.size(), branch.previous, tile, 0, &taken, looked_at);
    out.left.reserve(branch.left.size());
    for (std::size_t k = 0; k < taken.size(); ++k)
        if (!taken[k]) out.left.push_back(branch.left[k]);
    out.left.insert(out.left.end(), branch.left.begin() + static_cast<std::ptrdiff_t>(taken.size()), branch.left.end());
    if (scan.moves) tile = with_line(tile, branch.previous, scan.line), out.previous = tile;
    out.tiles.push_back(tile);
    looked_at += out.left.size() / 2;  // copied, which is quicker
    return out;
}

// The tiles of fewer than `limit` passes, or none: the branches that did the most work so far go on.
std::vector<index_t> beam_search(const std::vector<Item>& items, const Grower& grower, std::size_t limit, double budget) {
    std::vector<Branch> beam(1), next;
    beam[0] = {items, {}, grower.scan.before, 0};
    for (std::size_t depth = 1; depth < limit && static_cast<double>(grower.looked_at) < budget; ++depth) {
        std::vector<Extension> options;
        for (const Branch& branch : beam) grower.extend(branch, options);
        std::stable_sort(options.begin(), options.end(), [](const Extension& x, const Extension& y) { return x.done > y.done; });
        next.clear();
        std::vector<std::pair<double, std::size_t>> seen;  // work done and left: equal ones are most often the same
        for (const Extension& option : options) {
            if (next.size() == grower.round.beam) break;
            Branch branch = after_pass(*option.branch, option, grower.scan, grower.taken, grower.looked_at);
            if (branch.left.empty()) return branch.tiles;
            const std::pair<double, std::size_t> key{option.done, branch.left.size()};
            if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
            seen.push_back(key);
            next.push_back(std::move(branch));
        }
        beam.swap(next);
    }
    return {};
}

// Weights that grow with the length of what waits for an item, to 1 + `early` times the plain ones for the longest.
void weigh(std::vector<Item>& items, const std::vector<Item>& plain, double early) {
    std::vector<double> height(items.size());
    double of_mixed[64] = {}, of_used[64] = {}, highest = 0;
    for (std::size_t k = items.size(); k-- > 0;) {
        double above = 0;
        for (index_t m = items[k].mixed; m; m &= m - 1) above = std::max(above, of_used[__builtin_ctzll(m)]);
        for (index_t m = items[k].used; m; m &= m - 1) above = std::max(above, of_mixed[__builtin_ctzll(m)]);
        height[k] = above + (items[k].mixed != 0);
        highest = std::max(highest, height[k]);
        for (index_t m = items[k].mixed; m; m &= m - 1) of_mixed[__builtin_ctzll(m)] = height[k];
        for (index_t m = items[k].used; m; m &= m - 1) {
            double& used = of_used[__builtin_ctzll(m)];
            used = std::max(used, height[k]);
        }
    }
    for (std::size_t k = 0; k < items.size(); ++k) items[k].weight = plain[k].weight * (1 + early * height[k] / std::max(highest, 1.0));
}

// Whether operators join qubits that are near each other, on average.
bool joins_neighbours(const std::vector<Item>& items, int num_qubits) {
    double distance = 0, count = 0;
    for (const Item& item : items) {
        if (count_of(item.used) < 2) continue;
        distance += 63 - __builtin_clzll(item.used) - __builtin_ctzll(item.used);
        ++count;
    }
    return distance <= kNear * num_qubits * count;
}

// Joins what changes one qubit only to the item that comes before it on that qubit, in the order of `items`.
std::vector<Item> joined_to_former(const std::vector<Item>& items) {
    std::vector<Item> out;
    std::size_t former[64] = {};  // of the items that use the qubit: 1 + its place in `out`
    for (const Item& item : items) {
        if (item.used == item.mixed && count_of(item.mixed) == 1) {
            const std::size_t at = former[__builtin_ctzll(item.mixed)];
            if (at && (out[at - 1].mixed & item.mixed)) {
                out[at - 1].weight += item.weight;
                continue;
            }
        }
        out.push_back(item);
        for (index_t m = item.used; m; m &= m - 1) former[__builtin_ctzll(m)] = out.size();
    }
    return out;
}

}  // namespace

std::vector<Item> joined_items(const std::vector<Item>& items) {
    std::vector<Item> out;
    for (const Item& item : items)
        if (item.mixed || (item.used & (item.used - 1))) out.push_back(item);
    for (int way = 0; way < 2; ++way) {  // to what comes before; then, backwards, to what comes after
        out = joined_to_former(out);
        std::reverse(out.begin(), out.end());
    }
    return out;
}

std::size_t fewest_passes(const std::vector<Item>& items, const Scan& scan) {
    index_t mixed = 0;
    for (const Item& item : items) mixed |= item.mixed;
    const int room = scan.tile_qubits - count_of(scan.line);
    // each tile adds `room` qubits to those before; the first holds the line, or any of what it follows
    const int left = scan.before == scan.line ? count_of(mixed & ~scan.line) : count_of(mixed) - count_of(scan.line);
    return std::max((left + room - 1) / room, 1);
}

std::vector<index_t> fewer_passes(const std::vector<Item>& items, const Scan& scan, std::size_t limit, const Budget& budget) {
    const std::size_t fewest = fewest_passes(items, scan);
    std::vector<index_t> best;
    std::vector<Item> weighed = items;
    std::vector<char> taken;
    std::size_t looked_at = 0;
    const auto cost = [&](const Round& round) {
        const int all = 2 * scan.num_qubits, climbed = round.climb ? round.climbs + std::min(round.windows, all) : 0;
        const int scans = (round.windows ? all : 0) + climbed * kCloses;
        return budget.per_scan * static_cast<double>(limit * round.beam * static_cast<std::size_t>(scans));
    };
    const Round* next[] = {std::begin(kWindowRounds), std::begin(kClimbRounds)};
    const Round* const end[] = {std::end(kWindowRounds), std::end(kClimbRounds)};
    int kind = joins_neighbours(items, scan.num_qubits) ? 0 : 1;
    int failed = 0;
    double dearest = 0;  // of the rounds so far
    for (int tried = 0; limit > fewest; ++tried) {  // one of each kind, then of that which found more
        int now = tried == 1 ? 1 - kind : kind;
        if (next[now] == end[now]) now = 1 - now;
        if (next[now] == end[now]) break;
        const Round& round = *next[now]++;
        // after failures only cheaper rounds: a search with less time would try them, and may find fewer passes by them
        if (static_cast<double>(looked_at) + cost(round) > budget.items || (failed >= kFailures && cost(round) > dearest)) {
            next[now] = end[now];
            continue;
        }
        dearest = std::max(dearest, cost(round));
        std::mt19937_64 random(7);  // fixed: a plan is a pure function of its input
        weigh(weighed, items, round.early);
        const Grower grower{scan, round, random, taken, looked_at};
        std::vector<index_t> tiles = beam_search(weighed, grower, limit, budget.items);
        ++failed;
        if (!tiles.empty()) limit = tiles.size(), kind = now, failed = 0, best = std::move(tiles);
    }
    return best;
}

}  // namespace qsim
