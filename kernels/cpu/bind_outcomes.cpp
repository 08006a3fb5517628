// bind_outcomes.cpp -- the Python face of outcomes.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bind.hpp"
#include "outcomes.hpp"

namespace qsim {

using namespace nb::literals;

namespace {

auto as_array(const std::vector<std::int64_t>& values) {
    auto out = make_array<std::int64_t>(values.size());
    std::copy(values.begin(), values.end(), out.data());
    return out;
}

nb::list labels(const std::vector<index_t>& keys, const Reads& reads, std::vector<index_t> base) {
    ValueWriter writer(reads, std::move(base));
    nb::list out;
    for (index_t key : keys) {
        const std::string& text = writer.text(key);
        out.append(nb::str(text.data(), text.size()));
    }
    return out;
}

nb::tuple read_outcomes(IndexIn samples, Reads reads, std::vector<index_t> base, bool memory) {
    Outcomes found;
    {
        nb::gil_scoped_release release;
        found = distinct_outcomes(samples.data(), samples.size(), reads, memory);
    }
    nb::object order = memory ? nb::cast(as_array(found.order)) : nb::none();
    return nb::make_tuple(labels(found.keys, reads, std::move(base)), as_array(found.counts), order);
}

nb::list value_labels(IndexIn keys, const Reads& reads, std::vector<index_t> base) {
    return labels(std::vector<index_t>(keys.data(), keys.data() + keys.size()), reads, std::move(base));
}

}  // namespace

void bind_outcomes(nb::module_& m) {
    m.def("read_outcomes", &read_outcomes, "samples"_a, "reads"_a, "base"_a, "memory"_a,
          "Distinct values in hexadecimal, how often each came, and its place for each sample or None.");
    m.def("value_labels", &value_labels, "keys"_a, "reads"_a, "base"_a, "The value of each key in hexadecimal.");
}

}  // namespace qsim
