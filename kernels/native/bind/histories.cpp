// bind/histories.cpp -- Python bindings of cpu/history/: programs whose histories are followed without a Python step each.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/bind.hpp"
#include "cpu/history/run.hpp"
#include "sampling/binomial.hpp"

namespace qsim {

using namespace nb::literals;

namespace {

int add_prepare(HistoryProgram& program, ComplexIn factors) {
    HistoryNode node;
    node.type = NodeType::kPrepare;
    node.factors.assign(factors.data(), factors.data() + factors.size());
    return program.add(std::move(node));
}

int add_pass(HistoryProgram& program, TilePass& pass) {
    pass.finish();
    if (!pass.fits(program.num_qubits(), program.single()))
        throw std::invalid_argument("a program runs on states of its own width and precision");
    HistoryNode node;
    node.type = NodeType::kPass;
    node.pass = &pass;
    return program.add(std::move(node));
}

int add_collapse(HistoryProgram& program, NodeType type, std::vector<int> qubits, std::vector<std::pair<int, int>> clbits) {
    HistoryNode node;
    node.type = type;
    node.qubits = std::move(qubits);
    node.clbits = std::move(clbits);
    return program.add(std::move(node));
}

int add_choose(HistoryProgram& program, std::vector<int> bits, const std::vector<bool>& back) {
    HistoryNode node;
    node.type = NodeType::kChoose;
    node.bits = std::move(bits);
    node.targets.resize(back.size());
    node.back.assign(back.begin(), back.end());
    return program.add(std::move(node));
}

int add_assign(HistoryProgram& program, std::vector<int> bits, std::vector<std::uint64_t> values, std::vector<int> written) {
    HistoryNode node;
    node.type = NodeType::kAssign;
    node.bits = std::move(bits);
    node.values = std::move(values);
    node.written = std::move(written);
    return program.add(std::move(node));
}

int add_end(HistoryProgram& program, std::vector<std::pair<int, int>> shown, Reads reads) {
    HistoryNode node;
    node.clbits = std::move(shown);
    node.reads = std::move(reads);
    return program.add(std::move(node));
}

// (labels, counts or probabilities, order, histories, neglected, visits, resets), or (reason, node, value) of a failure.
nb::tuple run(const HistoryProgram& program, std::int64_t shots, bool memory, std::vector<std::uint32_t> seed,
              std::vector<std::uint32_t> key, int threads, const std::vector<double>& tolerances, const std::vector<std::int64_t>& limits,
              nb::callable check) {
    HistoryRequest request;
    request.shots = shots;
    request.memory = memory;
    request.seed = std::move(seed);
    request.key = std::move(key);
    request.threads = threads;
    request.norm_drift = tolerances.at(0), request.least = tolerances.at(1);
    request.max_rounds = limits.at(0), request.max_branches = limits.at(1);
    request.max_outcomes = static_cast<std::size_t>(limits.at(2));
    request.check = [&check] {
        nb::gil_scoped_acquire acquire;
        check();
    };
    try {
        HistoryResult result;
        {
            nb::gil_scoped_release release;
            result = run_histories(program, request);
        }
        const nb::object values = shots ? nb::cast(as_array(result.counts)) : nb::cast(as_array(result.weights));
        return nb::make_tuple(result.labels, values, as_array(result.order), result.histories, result.neglected, result.visits,
                              result.resets);
    } catch (const HistoryFailure& failure) {
        return nb::make_tuple(static_cast<int>(failure.reason), failure.node, failure.value);
    }
}

nb::object split(const std::vector<std::uint32_t>& seed, const std::vector<std::uint32_t>& key, std::int64_t shots, RealIn probabilities,
                 int draws) {
    std::vector<std::int64_t> counts(probabilities.size()), all;
    Stream stream(seed, key);
    for (int draw = 0; draw < draws; ++draw) {
        multinomial(stream, shots, probabilities.data(), probabilities.size(), counts.data());
        all.insert(all.end(), counts.begin(), counts.end());
    }
    return nb::cast(as_array(all));
}

}  // namespace

void bind_histories(nb::module_& m) {
    nb::class_<HistoryProgram>(m, "HistoryProgram")
        .def(nb::init<int, bool, int>(), "num_qubits"_a, "single"_a, "num_clbits"_a)
        .def("add_prepare", &add_prepare, "factors"_a)
        .def("add_pass", &add_pass, "program"_a, nb::keep_alive<1, 2>())
        .def("add_measure", [](HistoryProgram& p, std::vector<int> qubits, std::vector<std::pair<int, int>> clbits) {
            return add_collapse(p, NodeType::kMeasure, std::move(qubits), std::move(clbits));
        }, "qubits"_a, "clbits"_a)
        .def("add_reset", [](HistoryProgram& p, std::vector<int> qubits) {
            return add_collapse(p, NodeType::kReset, std::move(qubits), {});
        }, "qubits"_a)
        .def("add_choose", &add_choose, "bits"_a, "back"_a)
        .def("add_assign", &add_assign, "bits"_a, "values"_a, "written"_a)
        .def("add_end", &add_end, "shown"_a, "reads"_a)
        .def("set_next", &HistoryProgram::set_next, "node"_a, "next"_a)
        .def("set_target", &HistoryProgram::set_target, "node"_a, "value"_a, "target"_a)
        .def("run", &run, "shots"_a, "memory"_a, "seed"_a, "key"_a, "threads"_a, "tolerances"_a, "limits"_a, "check"_a,
             "Follows all histories; see cpu/history/run.hpp.");
    m.def("multinomial", &split, "seed"_a, "key"_a, "shots"_a, "probabilities"_a, "draws"_a,
          "Counts of each outcome, draw by draw, from one stream; see sampling/binomial.hpp.");
    m.def("pairwise_sum", [](RealIn values) { return pairwise_sum(values.data(), values.size()); }, "values"_a,
          "The sum as NumPy adds; see sampling/binomial.hpp.");
}

}  // namespace qsim
