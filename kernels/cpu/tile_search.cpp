// tile_search.cpp -- greedy closure over many seeds: each pass takes the tile under which the most work may act at once.
#include "tile_search.hpp"

#include <algorithm>
#include <iterator>
#include <random>

namespace qsim {

namespace {

constexpr int kRandomSeeds = 12;

struct Scan {
    const index_t* mixed;
    const index_t* used;
    const double* weights;
    index_t all;
    int tile_qubits;

    // Takes what may act inside a tile grown from `tile`; fills `members`, returns their weight.
    double close(const std::vector<std::int64_t>& remaining, index_t& tile, std::vector<std::int64_t>* members) const {
        index_t blocked = 0, blocked_mix = 0;
        double weight = 0;
        for (const std::int64_t k : remaining) {
            bool taken = !(used[k] & blocked) && !(mixed[k] & blocked_mix);
            if (taken && (mixed[k] & ~tile)) {
                taken = __builtin_popcountll(tile | mixed[k]) <= tile_qubits;
                if (taken) tile |= mixed[k];
            }
            if (taken) {
                weight += weights[k];
                if (members) members->push_back(k);
                continue;
            }
            blocked |= mixed[k];
            blocked_mix |= used[k];
            if (blocked == all) break;
        }
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

std::vector<TileChoice> search_tiles(const index_t* mixed, const index_t* used, const double* weights, std::size_t count,
                                     int num_qubits, int tile_qubits, index_t always) {
    const index_t all = num_qubits >= 64 ? ~index_t{0} : (index_t{1} << num_qubits) - 1;
    const Scan scan{mixed, used, weights, all, tile_qubits};
    std::vector<std::int64_t> remaining(count);
    for (std::size_t k = 0; k < count; ++k) remaining[k] = static_cast<std::int64_t>(k);
    std::mt19937_64 random(7);  // fixed: a plan is a pure function of its input
    std::vector<TileChoice> passes;
    while (!remaining.empty()) {
        TileChoice best{};
        double best_weight = -1;
        const bool whole = tile_qubits >= num_qubits;
        for (index_t seed : whole ? std::vector<index_t>{all} : seeds(num_qubits, tile_qubits, always, random)) {
            index_t tile = seed;
            const double weight = scan.close(remaining, tile, nullptr);
            if (weight > best_weight) best_weight = weight, best.tile = seed;
        }
        scan.close(remaining, best.tile, &best.members);
        if (best.members.empty()) {  // wider than any tile: a pass of its own
            best.members.push_back(remaining.front());
            best.tile = always | mixed[remaining.front()];
        }
        std::vector<std::int64_t> left;
        left.reserve(remaining.size());
        std::set_difference(remaining.begin(), remaining.end(), best.members.begin(), best.members.end(), std::back_inserter(left));
        remaining = std::move(left);
        passes.push_back(std::move(best));
    }
    return passes;
}

}  // namespace qsim
