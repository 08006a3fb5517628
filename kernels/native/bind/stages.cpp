// bind/stages.cpp -- Python bindings of the search for stages of a GPU's tile pass.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bind/bind.hpp"
#include "cuda/stage_search.hpp"

using namespace nanobind::literals;

namespace qsim {

namespace {

std::pair<std::vector<std::pair<index_t, index_t>>, bool> search(const std::vector<StageItem>& items, const StageRules& rules) {
    const StagePlan plan = search_stages(items, rules);
    std::vector<std::pair<index_t, index_t>> out;
    for (const StageChoice& choice : plan.path) out.emplace_back(choice.registers, choice.pair);
    return {out, plan.holds};
}

}  // namespace

void bind_stages(nb::module_& m) {
    nb::enum_<StageItemKind>(m, "StageItemKind")
        .value("PLAIN", StageItemKind::plain)
        .value("CORE", StageItemKind::core)
        .value("FLIP", StageItemKind::flip)
        .value("SIGN", StageItemKind::sign)
        .value("ANYWHERE", StageItemKind::anywhere);
    nb::class_<StageItem>(m, "StageItem")
        .def("__init__",
             [](StageItem* self, index_t mixed, index_t used, double energy, double worth, StageItemKind kind) {
                 new (self) StageItem{mixed, used, energy, worth, kind};
             },
             "mixed"_a, "used"_a, "energy"_a, "worth"_a, "kind"_a);
    nb::class_<StageEnergies>(m, "StageEnergies")
        .def("__init__",
             [](StageEnergies* self, double exchange, double block, double table, double outer, double shared) {
                 new (self) StageEnergies{exchange, block, table, outer, shared};
             },
             "exchange"_a, "block"_a, "table"_a, "outer"_a, "shared"_a);
    nb::class_<StageRules>(m, "StageRules")
        .def("__init__",
             [](StageRules* self, std::vector<int> tile, int register_qubits, int line_qubits, index_t loads, index_t stores,
                bool pairs, const StageEnergies& energies, bool brief) {
                 index_t inside = 0;
                 for (const int q : tile) inside |= index_t{1} << q;
                 new (self) StageRules{std::move(tile), inside, register_qubits, line_qubits, loads, stores, pairs, energies, brief};
             },
             "tile"_a, "register_qubits"_a, "line_qubits"_a, "loads"_a, "stores"_a, "pairs"_a, "energies"_a, "brief"_a);
    m.def("search_stages", &search, "items"_a, "rules"_a, nb::call_guard<nb::gil_scoped_release>(),
          "(registers, pair) of each stage, as masks, and whether the last one's work waits for it; see stage_search.hpp.");
}

}  // namespace qsim
