// planner/tile_search.hpp -- divides operators into passes, each with the qubits of its tile.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/op_list.hpp"

namespace qsim {

// One pass: the qubits inside the tile, those of them that are the lowest in memory meanwhile, and the operators that act in it, by
// number, in order.
struct TileChoice {
    index_t tile = 0, line = 0;
    std::vector<std::int64_t> members;
};

struct TileRules {
    int tile_qubits;
    index_t line;             // the lowest qubits, a part of every tile
    double pass_seconds = 0;  // of one pass: where a longer search pays, one follows for fewer passes
    bool moves = false;       // a pass may bring other qubits of its tile to the lowest places; then the next tile holds those
    index_t before = 0;       // of these, the tile before the first one, where there is one
};

// Passes that cover all of `ops`, in an order that commutes; an operator acts in a tile that holds the qubits it changes. An
// operator that changes more qubits than fit gets a pass of its own, and nothing moves. The result depends on the input alone.
std::vector<TileChoice> search_tiles(const OpList& ops, int num_qubits, const TileRules& rules);

// The cost of a matrix on two qubits in rotations: 1 for a core, which keeps the parity of the two bits.
double mixes_of_pair(const complex_t* matrix);

// The work of `ops` per amplitude inside a tile.
struct TileWork {
    double flops = 0, sweeps = 0;
    int phase_layers = 0;  // sweeps for diagonals: one for all that no mixing operator separates
    double mixes = 0;      // operators on one or two qubits that change values, by the share of amplitudes that they act on, and parities
    int wide = 0;          // matrices on more qubits
    double wide_flops = 0;
};
TileWork tile_work(const OpList& ops);

}  // namespace qsim
