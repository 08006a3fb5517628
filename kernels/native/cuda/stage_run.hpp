// cuda/stage_run.hpp -- one stage applied to the operators that are left: which of them act, and at what energy.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "cuda/stage_search.hpp"
#include "cuda/tuning.hpp"

namespace qsim {

constexpr int kWindow = 96;    // a scan ends after as many blocked items: keeps its time bounded
constexpr int kLevels = 16;    // rounds of tables that are told apart
constexpr int kSelecting = 3;  // qubits that may choose the matrix of a block on a pair, MAX_SELECTING of engines/cuda/tile/pairs.py

// For each qubit, the mask of all qubits of the diagonals on it that wait; diagonals of signs alone are kept apart.
struct Waiting {
    std::array<index_t, 64> phases{}, signs{};
};

inline int lowest(index_t mask) { return __builtin_ctzll(mask); }
inline int count(index_t mask) { return __builtin_popcountll(mask); }

// One stage as it takes items in order.
struct StageRun {
    const std::vector<StageItem>& items;
    const StageRules& rules;
    index_t registers, pair, selectable;  // selectable: qubits that may choose the matrix of a block on the pair
    Waiting waiting;
    std::array<std::int8_t, 64> level{};  // rounds of tables and operators so far, by qubit
    std::array<index_t, kLevels> tables{};
    std::array<bool, kLevels> outer{};  // whether a table depends on qubits outside the registers
    std::array<int, kLevels> cores{};
    double energy = 0, worth = 0, saved = 0;
    int done = 0;
    bool closed = true;  // the next operator on the pair begins a block
    bool tabled = false;  // the open block begins with a diagonal of more than signs
    index_t before = 0, chosen_by = 0;  // other qubits that the open block reads: at its beginning, and later
    index_t begun = 0;                  // qubits of the pair that it changes
    index_t since = 0;                  // what has changed after the block

    // `choosing`: qubits of the tile that may choose the matrix of a block; qubits outside the tile always may.
    StageRun(const std::vector<StageItem>& all, const StageRules& given, index_t held, index_t lanes, index_t choosing, const Waiting& before)
        : items(all), rules(given), registers(held), pair(lanes), selectable(choosing | ~given.inside), waiting(before) {}

    int level_of(index_t mask) const {
        int out = 0;
        for (; mask; mask &= mask - 1) out = std::max<int>(out, level[lowest(mask)]);
        return out;
    }

    // Multiplies in the diagonals that wait on `mask`; returns all their qubits.
    index_t take(index_t mask) {
        index_t out = 0;
        for (auto* set : {&waiting.phases, &waiting.signs})
            for (index_t rest = mask; rest; rest &= rest - 1) {
                const int q = lowest(rest);
                out |= (*set)[q];
                for (index_t other = (*set)[q]; other; other &= other - 1) (*set)[lowest(other)] &= ~(index_t{1} << q);
                (*set)[q] = 0;
            }
        return out;
    }

    // The qubits of the diagonals that wait on `mask`, those of signs alone left out.
    index_t waits_on(index_t mask) const {
        index_t out = 0;
        for (; mask; mask &= mask - 1) out |= waiting.phases[lowest(mask)];
        return out;
    }

    void diagonal(const StageItem& item) {
        const int at = level_of(item.used);
        auto& set = item.kind == StageItemKind::sign ? waiting.signs : waiting.phases;
        for (index_t rest = item.used; rest; rest &= rest - 1) {
            level[lowest(rest)] = static_cast<std::int8_t>(at);
            set[lowest(rest)] |= item.used;
        }
    }

    bool selects(index_t qubits) const { return !(qubits & ~selectable) && count(qubits) <= kSelecting; }

    // Whether an item acts as a block on the pair.
    bool is_on_pair(const StageItem& item) const { return item.mixed && !(item.mixed & ~pair) && selects(item.used & ~pair); }

    // Whether the open block takes one more operator, which reads the qubits `outer` outside the pair. As engines/cuda/tile/stages.py does it:
    // - where the block stands, if as few qubits choose its matrix then;
    // - moved to the end of the stage, if `outer` has changed since the block and nothing that it reads has;
    // - with the diagonal at its beginning taken out as a table, if that alone is in the way.
    bool joins(index_t outer, bool first = false) {
        if (closed) return false;
        const bool moves = outer & since, fits = selects(before | chosen_by | outer);
        if (!fits || (moves && (before | chosen_by) & since)) {
            if ((moves && chosen_by & since) || !selects(chosen_by | outer)) return false;
            if (tabled) energy += rules.energies.table;
            before = 0, tabled = false;
        }
        if (moves) since = 0;
        (first ? before : chosen_by) |= outer;
        return true;
    }

    // An operator on the pair, with the diagonals before it. Other qubits that they read choose the block's matrix where that is allowed,
    // else the diagonals become a table of their own.
    void on_pair(const StageItem& item) {
        bool phases = waits_on(item.mixed) & ~pair;
        index_t outer = take(item.mixed) & ~pair;
        if (!selects(outer | (item.used & ~pair))) {
            if (phases) energy += rules.energies.table * (outer & ~rules.inside ? kTablesPerThread : 1);
            closed = true, phases = false, outer = 0;
        }
        const bool first = !(item.mixed & begun) && !(item.used & ~pair);
        if (!joins(outer | (item.used & ~pair), first)) {
            energy += rules.energies.block;
            before = outer, tabled = false, chosen_by = item.used & ~pair, since = begun = 0;
        }
        tabled = tabled || (phases && !(item.mixed & begun));
        begun |= item.mixed;
        closed = false;
        worth += item.worth;
        ++done;
    }

    void in_registers(const StageItem& item) {
        const index_t all = item.mixed | item.used;
        const int at = std::min(level_of(all) + 1, kLevels - 1);
        for (index_t rest = all; rest; rest &= rest - 1) level[lowest(rest)] = static_cast<std::int8_t>(at);
        if (item.kind == StageItemKind::flip) {
            for (auto* set : {&waiting.phases, &waiting.signs})
                if ((*set)[lowest(item.mixed)])  // a diagonal that waits on its qubit waits on the controls as well from now on
                    for (index_t rest = all; rest; rest &= rest - 1) (*set)[lowest(rest)] |= all;
        } else {
            index_t tabled_qubits = waits_on(item.mixed);
            if (take(item.mixed) & pair) {
                if (joins(item.mixed)) tabled_qubits &= ~pair;
                else closed = true;
            }
            if (tabled_qubits) {
                tables[at] |= (tabled_qubits | item.mixed) & registers;
                outer[at] = outer[at] || tabled_qubits & ~registers;
            }
        }
        if (all & pair) closed = true;
        since |= item.mixed;
        energy += item.energy;
        worth += item.worth;
        cores[at] += item.kind == StageItemKind::core;
        ++done;
    }

    void finish() {
        for (int at = 0; at < kLevels; ++at) {
            if (outer[at]) energy += rules.energies.outer;
            if (tables[at]) energy += rules.energies.table * (1 - 1.0 / (1 << count(tables[at])));
            energy -= rules.energies.shared * (cores[at] / 2);
        }
    }

    // The items of `left` that can act, in order; the others go to `rest` where it is given.
    void over(const std::vector<std::int32_t>& left, std::vector<std::int32_t>* rest) {
        index_t mixed = 0, used = 0;
        int blocked = 0;
        std::size_t k = 0;
        for (; k < left.size() && blocked < kWindow; ++k) {
            const StageItem& item = items[left[k]];
            const bool on_it = is_on_pair(item);
            const bool outside = item.mixed & ~registers && !on_it && item.kind != StageItemKind::anywhere;
            if (item.mixed & (mixed | used) || item.used & mixed || outside) {
                mixed |= item.mixed;
                used |= item.used;
                ++blocked;
                if (rest) rest->push_back(left[k]);
            } else if (!item.mixed) {
                diagonal(item);
            } else if (on_it) {
                on_pair(item);
            } else {
                in_registers(item);
            }
        }
        if (rest) rest->insert(rest->end(), left.begin() + static_cast<std::ptrdiff_t>(k), left.end());
        finish();
    }
};

}  // namespace qsim
