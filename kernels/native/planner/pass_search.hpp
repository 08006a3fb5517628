// planner/pass_search.hpp -- the planner's longer search, for fewer passes than the first that were found.
#pragma once

#include "planner/tile_scan.hpp"

namespace qsim {

// `items` without those that never decide where a pass ends: phases of one qubit go with their neighbours, and what changes one
// qubit goes with an operator right before or after it that changes the qubit too. Passes over the one cover the other.
std::vector<Item> joined_items(const std::vector<Item>& items);

// No passes over `items` are fewer than this.
std::size_t fewest_passes(const std::vector<Item>& items, const Scan& scan);

// Limits of a search: the items that it may look at in all, and those that one scan looks at on average.
struct Budget {
    double items, per_scan;
};

// The tiles of fewer than `limit` passes over joined `items`, or none. The search stays within its budget, about, and ends where it
// cannot get better or has failed to a few times. The result depends on the input alone.
std::vector<index_t> fewer_passes(const std::vector<Item>& items, const Scan& scan, std::size_t limit, const Budget& budget);

}  // namespace qsim
