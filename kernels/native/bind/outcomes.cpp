// bind/outcomes.cpp -- Python bindings of sampling/outcomes.hpp: distinct outcomes, their counts and names.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "bind/bind.hpp"
#include "sampling/outcomes.hpp"

namespace qsim {

using namespace nb::literals;

namespace {

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
    Outcomes outcomes;
    {
        nb::gil_scoped_release release;
        outcomes = distinct_outcomes(samples.data(), samples.size(), reads, memory);
    }
    nb::object order = memory ? nb::cast(as_array(outcomes.order)) : nb::none();
    return nb::make_tuple(labels(outcomes.keys, reads, std::move(base)), as_array(outcomes.counts), order);
}

// Strings of bits, registers apart; see the name's docstring below.
nb::list bit_labels(IndexIn keys, const Reads& reads, const std::vector<int>& sizes) {
    nb::list out;
    std::vector<std::size_t> place;  // in the string, of each bit of a value
    std::size_t length = 0;
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {  // highest bits first
        if (size != sizes.rbegin()) ++length;
        for (int j = 0; j < *size; ++j) place.push_back(length++);
    }
    std::reverse(place.begin(), place.end());
    std::string blank(length, ' ');
    for (std::size_t at : place) blank[at] = '0';
    for (std::size_t k = 0; k < keys.size(); ++k) {
        std::string text = blank;
        for (const auto& [from, to] : reads) text[place.at(to)] = "01"[keys.data()[k] >> from & 1];
        out.append(nb::str(text.data(), text.size()));
    }
    return out;
}

// counts[labels[keys[k]]] = numbers[k]
void count_labels(nb::dict counts, nb::list labels, IndexIn keys, IndexIn numbers) {
    if (keys.size() != numbers.size()) throw std::invalid_argument("one number per key is needed");
    for (std::size_t k = 0; k < keys.size(); ++k) {
        const auto key = static_cast<std::size_t>(keys.data()[k]);
        if (key >= nb::len(labels)) throw nb::index_error();
        counts[labels[key]] = numbers.data()[k];
    }
}

nb::list value_labels(IndexIn keys, const Reads& reads, std::vector<index_t> base) {
    return labels(std::vector<index_t>(keys.data(), keys.data() + keys.size()), reads, std::move(base));
}

}  // namespace

void bind_outcomes(nb::module_& m) {
    m.def("read_outcomes", &read_outcomes, "samples"_a, "reads"_a, "base"_a, "memory"_a,
          "Distinct values in hexadecimal, how often each came, and its place for each sample or None.");
    m.def("value_labels", &value_labels, "keys"_a, "reads"_a, "base"_a, "The value of each key in hexadecimal.");
    m.def("bit_labels", &bit_labels, "keys"_a, "reads"_a, "sizes"_a,
          "The value of each key in binary: registers of `sizes` bits, lowest first in `sizes` and last in the string, a blank between.");
    m.def("count_labels", &count_labels, "counts"_a, "labels"_a, "keys"_a, "numbers"_a,
          "Sets the entry of counts under labels[key] to the number, for each of the keys.");
}

}  // namespace qsim
