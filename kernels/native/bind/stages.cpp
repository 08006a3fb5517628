// bind/stages.cpp -- the Python face of the search for phases of a GPU's tile pass.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bind/bind.hpp"
#include "cuda/stage_search.hpp"

using namespace nanobind::literals;

namespace qsim {

namespace {

std::pair<std::vector<std::pair<index_t, index_t>>, bool> search(const std::vector<PhaseItem>& items, const PhaseRules& rules) {
    const PhasePlan plan = search_phases(items, rules);
    std::vector<std::pair<index_t, index_t>> out;
    for (const PhaseChoice& choice : plan.path) out.emplace_back(choice.registers, choice.pair);
    return {out, plan.holds};
}

}  // namespace

void bind_phases(nb::module_& m) {
    nb::enum_<PhaseItemKind>(m, "PhaseItemKind")
        .value("PLAIN", PhaseItemKind::plain)
        .value("CORE", PhaseItemKind::core)
        .value("FLIP", PhaseItemKind::flip)
        .value("SIGN", PhaseItemKind::sign)
        .value("ANYWHERE", PhaseItemKind::anywhere);
    nb::class_<PhaseItem>(m, "PhaseItem")
        .def("__init__",
             [](PhaseItem* self, index_t mixed, index_t used, double energy, double worth, PhaseItemKind kind) {
                 new (self) PhaseItem{mixed, used, energy, worth, kind};
             },
             "mixed"_a, "used"_a, "energy"_a, "worth"_a, "kind"_a);
    nb::class_<PhaseEnergies>(m, "PhaseEnergies")
        .def("__init__",
             [](PhaseEnergies* self, double exchange, double block, double table, double outer, double shared) {
                 new (self) PhaseEnergies{exchange, block, table, outer, shared};
             },
             "exchange"_a, "block"_a, "table"_a, "outer"_a, "shared"_a);
    nb::class_<PhaseRules>(m, "PhaseRules")
        .def("__init__",
             [](PhaseRules* self, std::vector<int> tile, int register_qubits, int line_qubits, index_t loads, index_t stores,
                bool pairs, const PhaseEnergies& energies, bool brief) {
                 index_t inside = 0;
                 for (const int q : tile) inside |= index_t{1} << q;
                 new (self) PhaseRules{std::move(tile), inside, register_qubits, line_qubits, loads, stores, pairs, energies, brief};
             },
             "tile"_a, "register_qubits"_a, "line_qubits"_a, "loads"_a, "stores"_a, "pairs"_a, "energies"_a, "brief"_a);
    m.def("search_phases", &search, "items"_a, "rules"_a, nb::call_guard<nb::gil_scoped_release>(),
          "(registers, pair) of each phase, as masks, and whether the last one's work waits for it; see phase_search.hpp.");
}

}  // namespace qsim
