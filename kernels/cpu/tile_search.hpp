// tile_search.hpp -- the planner's inner scan: which operators go into which pass.
#pragma once

#include <cstdint>
#include <vector>

#include "bits.hpp"

namespace qsim {

struct TileChoice {
    index_t tile;  // mask of its qubits
    std::vector<std::int64_t> members;  // operators, in order
};

// mixed[k]: qubits whose value operator k changes; used[k]: all its qubits; weights[k]: what it is worth to take it.
// An operator may move before an earlier one if neither mixes a qubit that the other uses. Every pass's tile holds
// `always` and at most tile_qubits qubits; an operator that mixes more gets a pass of its own.
std::vector<TileChoice> search_tiles(const index_t* mixed, const index_t* used, const double* weights, std::size_t count,
                                     int num_qubits, int tile_qubits, index_t always);

}  // namespace qsim
