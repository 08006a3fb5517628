// tile_search.hpp -- chooses the tiles of a plan: the planner's inner scan.
#pragma once

#include <cstdint>
#include <vector>

#include "op_list.hpp"

namespace qsim {

// One pass: the qubits inside the tile and the operators that act in it, by number, in order.
struct TileChoice {
    index_t tile = 0;
    std::vector<std::int64_t> members;
};

// Passes that cover all of `ops`, in an order that commutes; an operator acts in a tile that holds the qubits it changes.
// `always` is a part of every tile; an operator that changes more than `tile_qubits` qubits gets a pass of its own.
std::vector<TileChoice> search_tiles(const OpList& ops, int num_qubits, int tile_qubits, index_t always);

// What `ops` cost per amplitude inside a tile.
struct TileWork {
    double flops = 0, sweeps = 0;
    int phase_layers = 0;  // sweeps for diagonals: one for all that no mixing operator separates
};
TileWork tile_work(const OpList& ops);

}  // namespace qsim
