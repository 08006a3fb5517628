// cuda/stage_search.hpp -- chooses what a GPU's threads hold between two exchanges of a tile pass: the scheduler's inner scan.
#pragma once

#include <vector>

#include "base/bits.hpp"

namespace qsim {

enum class StageItemKind { plain, core, flip, sign, anywhere };

// What an operator of a pass changes and reads. One that changes nothing is a diagonal: it waits, and is multiplied in before one of
// its qubits changes. Kinds: a core shares its tables with another of the same phase; diagonals wait behind a flip; one of signs costs
// nothing; some operators need no qubit in registers.
struct StageItem {
    index_t mixed, used;
    double energy;  // in registers, without the diagonals before it
    double worth;   // with its usual share of them and of exchanges: how far doing it brings one
    StageItemKind kind;
};

// Of an exchange, of a matrix on two qubits of neighbouring threads, of a table of phases, what that takes more where qubits outside
// the registers choose from it, and what two cores save that share tables.
struct StageEnergies {
    double exchange, block, table, outer, shared;
};

struct StageRules {
    std::vector<int> tile;  // qubits, ascending
    index_t inside;         // the same, as a mask
    int register_qubits, line_qubits;
    index_t loads, stores;  // qubits that the first and the last phase leave to the threads
    bool pairs;             // whether a phase may have matrices on two qubits of neighbouring threads
    StageEnergies energies;
    bool brief;  // looks at few phases at a time
};

// A phase's register qubits and its pair, as masks.
struct StageChoice {
    index_t registers = 0, pair = 0;
};

// Phases in order; `holds`: what the last one's registers can do after all else waits for it.
struct StagePlan {
    std::vector<StageChoice> path;
    bool holds = false;
};

// Phases that do all items once each, in an order that commutes with theirs, by little energy. Depends on the input alone.
StagePlan search_stages(const std::vector<StageItem>& items, const StageRules& rules);

}  // namespace qsim
