// planner/tile_scan.hpp -- which operators may act inside a tile: the scan that every search for tiles repeats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "base/bits.hpp"

namespace qsim {

inline int count_of(index_t mask) { return __builtin_popcountll(mask); }

// An operator, as a search sees it: the qubits it changes and those it depends on.
struct Item {
    index_t mixed, used;
    std::int64_t number;
    double weight;  // of having done it
};

constexpr std::size_t kScanItems = 40;  // in whose time a scan starts and ends

struct Scan {
    index_t all;
    int num_qubits, tile_qubits;
    index_t line;    // the lowest qubits at the start
    index_t before;  // qubits of which the first tile holds as many as a line has: the line, or the tile before
    bool moves;      // a pass may bring others of its tile to the lowest places

    bool fits(index_t tile, index_t previous) const {
        return count_of(tile) <= tile_qubits && count_of(tile & ~previous) <= tile_qubits - count_of(line);
    }

    // Qubits that a tile holds whatever acts in it.
    index_t fixed() const { return moves ? 0 : line; }

    // Takes what may act inside a tile grown from `tile`, not by qubits of `barred`, of `count` items from `items` on; returns its
    // weight. The tile shares as many qubits as a line has with `previous`: with the tile before, or with the line itself where
    // nothing moves. Where `taken` is given, appends there for each item that was looked at whether it is taken.
    double close(const Item* items, std::size_t count, index_t previous, index_t& tile, index_t barred, std::vector<char>* taken,
                 std::size_t& looked_at) const {
        index_t blocked = 0, blocked_mix = 0;
        double weight = 0;
        std::size_t k = 0;
        for (; k < count && blocked != all; ++k) {
            const Item& item = items[k];
            bool takes = !(item.used & blocked) && !(item.mixed & blocked_mix);
            if (takes && (item.mixed & ~tile)) {
                takes = !(item.mixed & barred) && fits(tile | item.mixed, previous);
                if (takes) tile |= item.mixed;
            }
            if (takes) weight += item.weight;
            else blocked |= item.mixed, blocked_mix |= item.used;
            if (taken) taken->push_back(takes);
        }
        looked_at += k + kScanItems;
        return weight;
    }
};

// A number below `count`.
inline int below(std::mt19937_64& random, int count) { return static_cast<int>((random() >> 32) * static_cast<index_t>(count) >> 32); }

// A member of `mask`, as a mask; 0 where it has none.
inline index_t any_of(index_t mask, std::mt19937_64& random) {
    if (!mask) return 0;
    for (int skip = below(random, count_of(mask)); skip > 0; --skip) mask &= mask - 1;
    return mask & -mask;
}

// The tile with as many qubits of `previous` as a line has.
inline index_t with_line(index_t tile, index_t previous, index_t line) {
    while (count_of(tile & previous) < count_of(line)) {
        const index_t others = previous & ~tile, candidates = others & line ? others & line : others;
        tile |= candidates & -candidates;
    }
    return tile;
}

}  // namespace qsim
