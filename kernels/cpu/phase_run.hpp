// phase_run.hpp -- what one phase does with the operators that are left, and what that costs; for phase_search.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "phase_search.hpp"

namespace qsim {

constexpr int kWindow = 96;  // blocked items looked at: keeps a step's cost bounded
constexpr int kLevels = 16;

using Waiting = std::array<index_t, 64>;  // by qubit: the qubits of the diagonals on it that wait, itself included

inline int lowest(index_t mask) { return __builtin_ctzll(mask); }
inline int count(index_t mask) { return __builtin_popcountll(mask); }

// What one phase does with a state.
struct Run {
    const std::vector<PhaseItem>& items;
    const PhaseRules& rules;
    index_t registers, pair;
    Waiting waiting;
    std::array<std::int8_t, 64> level{};  // rounds of tables and operators so far, by qubit
    std::array<index_t, kLevels> tables{};
    std::array<bool, kLevels> outer{};  // whether a table depends on qubits outside the registers
    std::array<int, kLevels> cores{};
    double energy = 0, worth = 0, saved = 0;
    int done = 0;
    index_t crossed = 0;  // qubits of the pair on which a diagonal with others waits
    bool closed = true;  // the next operator on the pair begins a block

    Run(const std::vector<PhaseItem>& all, const PhaseRules& given, index_t held, index_t lanes, const Waiting& before)
        : items(all), rules(given), registers(held), pair(lanes), waiting(before) {}

    int level_of(index_t mask) const {
        int out = 0;
        for (; mask; mask &= mask - 1) out = std::max<int>(out, level[lowest(mask)]);
        return out;
    }

    // Multiplies in what waits on `mask`.
    void take(index_t mask) {
        for (index_t rest = mask; rest; rest &= rest - 1) {
            const int q = lowest(rest);
            for (index_t other = waiting[q]; other; other &= other - 1) waiting[lowest(other)] &= ~(index_t{1} << q);
            waiting[q] = 0;
        }
    }

    index_t waits_on(index_t mask) const {
        index_t out = 0;
        for (; mask; mask &= mask - 1) out |= waiting[lowest(mask)];
        return out;
    }

    void diagonal(const PhaseItem& item) {
        const int at = level_of(item.used);
        for (index_t rest = item.used; rest; rest &= rest - 1) {
            level[lowest(rest)] = static_cast<std::int8_t>(at);
            if (item.kind != PhaseItemKind::sign) waiting[lowest(rest)] |= item.used;
        }
        if (item.used & ~pair) crossed |= item.used & pair;
    }

    void on_pair(const PhaseItem& item) {
        if (waits_on(item.mixed) & ~pair) energy += rules.energies.table, closed = true;
        if ((item.mixed | item.used) & crossed) closed = true, crossed = 0;
        take(item.mixed);
        if (closed) energy += rules.energies.block;
        closed = false;
        worth += item.worth;
        ++done;
    }

    void in_registers(const PhaseItem& item) {
        const index_t all = item.mixed | item.used;
        const int at = std::min(level_of(all) + 1, kLevels - 1);
        for (index_t rest = all; rest; rest &= rest - 1) level[lowest(rest)] = static_cast<std::int8_t>(at);
        if (item.kind == PhaseItemKind::flip) {
            if (waiting[lowest(item.mixed)])  // what waits on its qubit waits on the controls as well from now on
                for (index_t rest = all; rest; rest &= rest - 1) waiting[lowest(rest)] |= all;
        } else {
            if (const index_t found = waits_on(item.mixed)) {
                tables[at] |= (found | item.mixed) & registers;
                outer[at] = outer[at] || found & ~registers;
            }
            take(item.mixed);
        }
        if (all & pair) closed = true;
        energy += item.energy;
        worth += item.worth;
        cores[at] += item.kind == PhaseItemKind::core;
        ++done;
    }

    void finish() {
        for (int at = 0; at < kLevels; ++at) {
            if (outer[at]) energy += rules.energies.table;
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
            const PhaseItem& item = items[left[k]];
            const bool own = item.mixed && !((item.mixed | item.used) & ~pair);
            const bool outside = item.mixed & ~registers && !own && item.kind != PhaseItemKind::anywhere;
            if (item.mixed & (mixed | used) || item.used & mixed || outside) {
                mixed |= item.mixed;
                used |= item.used;
                ++blocked;
                if (rest) rest->push_back(left[k]);
            } else if (!item.mixed) {
                diagonal(item);
            } else if (own) {
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
