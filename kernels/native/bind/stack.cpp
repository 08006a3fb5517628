// bind/stack.cpp -- Python bindings of stacks of states, arrays (rows, 2**num_qubits), and of Pauli strings on them.
#include <nanobind/stl/vector.h>

#include "base/parallel.hpp"
#include "bind/bind.hpp"
#include "cpu/stack/sample.hpp"
#include "cpu/state/pauli.hpp"
#include "sampling/stream.hpp"

using namespace nanobind::literals;

namespace qsim {

namespace {

using MaskIn = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Amp>
using Stack = nb::ndarray<Amp, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void add(StackProgram& program, const OpList& ops) {
    const std::uint16_t slot = intern_name(kSlotName);
    for (std::size_t k = 0; k < ops.size(); ++k) program.add(ops, ops[k], ops[k].name == slot);
}

void run(const StackProgram& program, Stack<const complex_t> values, Stack<complex_t> states, int threads) {
    nb::gil_scoped_release release;
    program.run(values.data(), values.shape(1), values.shape(0), states.data(), threads);
}

void overlaps(const StackProgram& program, Stack<const complex_t> values, Stack<complex_t> kets, Stack<complex_t> bras,
              Stack<complex_t> out, int threads) {
    nb::gil_scoped_release release;
    program.overlaps(values.data(), values.shape(1), values.shape(0), kets.data(), bras.data(), out.data(), threads);
}

// One wide state is shared out among the threads, many states are handed to them whole.
template <class Real>
void expectations(Stack<const std::complex<Real>> states, MaskIn x, MaskIn z, Stack<double> out, int threads) {
    const index_t rows = states.shape(0);
    const int num_qubits = 63 - __builtin_clzll(states.shape(1));
    nb::gil_scoped_release release;
    parallel_chunks(rows, rows > 1 ? threads : 1, [&](index_t row, int) {
        pauli_expectations(states.data() + (row << num_qubits), num_qubits, x.data(), z.data(), x.size(),
                                 out.data() + row * x.size(), rows > 1 ? 1 : threads);
    });
}

void sum(Stack<const complex_t> states, MaskIn x, MaskIn z, RealIn weights, Stack<complex_t> out, int threads) {
    const index_t rows = states.shape(0);
    const int num_qubits = 63 - __builtin_clzll(states.shape(1));
    nb::gil_scoped_release release;
    parallel_chunks(rows, rows > 1 ? threads : 1, [&](index_t row, int) {
        pauli_sum(states.data() + (row << num_qubits), num_qubits, x.data(), z.data(), weights.data(), x.size(),
                        out.data() + (row << num_qubits), rows > 1 ? 1 : threads);
    });
}

// `stacks`: (program or None, values, qubits, first) each, as StackRows.
nb::tuple sample(nb::list stacks, const std::vector<std::uint32_t>& seed, index_t shots, bool memory, int threads) {
    std::vector<StackRows> rows;
    std::vector<Stack<const complex_t>> values;
    for (nb::handle item : stacks) {
        const auto stack = nb::cast<nb::tuple>(item);
        values.push_back(nb::cast<Stack<const complex_t>>(stack[1]));
        const bool is_state = stack[0].is_none();  // then the values are the states themselves
        rows.push_back({is_state ? nullptr : nb::cast<const StackProgram*>(stack[0]), values.back().data(), values.back().shape(1),
                        values.back().shape(0), nb::cast<index_t>(stack[3]), nb::cast<std::vector<int>>(stack[2])});
    }
    StackShots shots_of;
    {
        nb::gil_scoped_release release;
        shots_of = sample_rows(rows, seed, shots, memory, threads);
    }
    return nb::make_tuple(shots_of.ends, as_array(shots_of.keys), as_array(shots_of.counts), as_array(shots_of.order));
}

nb::object uniforms(const std::vector<std::uint32_t>& seed, const std::vector<std::uint32_t>& key, std::size_t count) {
    auto out = make_array<double>(count);
    Stream stream(seed, key);
    for (std::size_t k = 0; k < count; ++k) out.data()[k] = stream.uniform();
    return nb::cast(out);
}

}  // namespace

void bind_stacks(nb::module_& m) {
    nb::class_<StackProgram>(m, "StackProgram")
        .def(nb::init<int, std::vector<int>>(), "num_qubits"_a, "tile"_a)
        .def("add", &add, "ops"_a)
        .def("finish", &StackProgram::finish)
        .def("run", &run, "values"_a, "states"_a, "threads"_a)
        .def("overlaps", &overlaps, "values"_a, "kets"_a, "bras"_a, "out"_a, "threads"_a);
    m.def("pauli_expectations", &expectations<double>, "states"_a, "x"_a, "z"_a, "out"_a, "threads"_a);
    m.def("pauli_expectations", &expectations<float>, "states"_a, "x"_a, "z"_a, "out"_a, "threads"_a);
    m.def("pauli_sum", &sum, "states"_a, "x"_a, "z"_a, "weights"_a, "out"_a, "threads"_a);
    m.def("sample_stacks", &sample, "stacks"_a, "seed"_a, "shots"_a, "memory"_a, "threads"_a,
          "(ends, keys, counts, order) of the shots of all rows; see cpu/stack/sample.hpp.");
    m.def("uniforms", &uniforms, "seed"_a, "key"_a, "count"_a, "Numbers of a stream; see sampling/stream.hpp.");
    m.attr("STACK_TILE") = kStackTile;
    m.attr("SLOT_NAME") = kSlotName;
}

}  // namespace qsim
