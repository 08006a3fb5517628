// cuda/stage_search.hpp -- divides a GPU's tile pass into stages: which qubits a thread's registers hold in each.
//
// A stage is the work between two exchanges through shared memory. An operator acts in registers, so its qubits must number them.
#pragma once

#include <vector>

#include "base/bits.hpp"

namespace qsim {

enum class StageItemKind { plain, core, flip, sign, anywhere };

// One operator of a pass: masks of the qubits that it changes and reads. An operator that changes none is a diagonal: it waits, and is
// multiplied in before one of its qubits changes. Kinds: a core shares its phase tables with another core of the same stage; a flip
// exchanges amplitudes, and diagonals may wait behind it; a diagonal of signs costs nothing; some operators need no qubit in registers.
struct StageItem {
    index_t mixed, used;
    double energy;  // of doing it in registers, without the diagonals before it
    double worth;   // its energy with its usual share of diagonals and exchanges: the progress that doing it makes
    StageItemKind kind;
};

// Energies in picojoules an amplitude.
struct StageEnergies {
    double exchange;
    double block;   // a matrix on a pair: two qubits of neighbouring threads
    double table;   // one table of phases
    double outer;   // added where qubits outside the registers choose a table's entry
    double shared;  // saved where two cores share their tables
};

struct StageRules {
    std::vector<int> tile;  // qubits, ascending
    index_t inside;         // the same, as a mask
    int register_qubits, line_qubits;
    index_t loads, stores;  // qubits that the first and the last stage leave to the threads
    bool pairs;             // whether a stage may have matrices on a pair
    StageEnergies energies;
    bool brief;  // a short search: few states in the beam
};

// One stage: masks of its register qubits and of its pair, 0 where it has none.
struct StageChoice {
    index_t registers = 0, pair = 0;
};

// Stages in order. `holds`: the last stage was chosen first, and operators that can act there after all others wait for it.
struct StagePlan {
    std::vector<StageChoice> path;
    bool holds = false;
};

// Stages that do every item once, in an order that commutes with the given one, at little energy. The result depends on the input alone.
StagePlan search_stages(const std::vector<StageItem>& items, const StageRules& rules);

}  // namespace qsim
