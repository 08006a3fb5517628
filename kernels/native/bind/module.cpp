// bind/module.cpp -- the extension qsim_ozaki._native, and in it State and TileProgram. The GIL is released while they work.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <complex>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bind/bind.hpp"
#include "cpu/dispatch/kernel_table.hpp"
#include "cpu/state/buffer.hpp"
#include "cpu/state/measure.hpp"
#include "cpu/state/state.hpp"
#include "cpu/tile/pass.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using qsim::ComplexIn;
using qsim::make_array;
using qsim::RealIn;
using qsim::State;
using qsim::TilePass;

// A view of the amplitudes; it keeps the memory alive, not the State.
template <class Real>
nb::object view(const State& state) {
    auto* keep = new std::shared_ptr<qsim::Buffer>(state.buffer());
    nb::capsule owner(keep, [](void* p) noexcept { delete static_cast<std::shared_ptr<qsim::Buffer>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, std::complex<Real>, nb::ndim<1>>(
        state.data(), {std::size_t{1} << state.num_qubits()}, owner));
}

}  // namespace

NB_MODULE(_native, m) {
    // At exit Python may still hold objects of this module, as test runners do; only developers want to hear of it.
    nb::set_leak_warnings(std::getenv("QSIM_OZAKI_DEBUG") != nullptr);
    m.doc() = "Operator lists, planning, the CPU engine's states and programs, sampling.";
    m.def("isa", [] { return std::string(qsim::tile_kernels().name); }, "Name of the instruction set the kernels use.");

    m.def("release_kept_buffer", &qsim::release_kept_buffer, "Gives the memory kept for the next state back; returns its bytes.");

    qsim::bind_angles(m);
    qsim::bind_ops(m);
    qsim::bind_outcomes(m);
    qsim::bind_stages(m);
    qsim::bind_stacks(m);

    nb::class_<State>(m, "State")
        .def(nb::init<int, bool>(), "num_qubits"_a, "single"_a)
        .def_prop_ro("num_qubits", &State::num_qubits)
        .def_prop_ro("single", &State::single)
        .def("vector", [](State& s, int threads) {
            {
                nb::gil_scoped_release release;
                s.settle(threads);
            }
            return s.single() ? view<float>(s) : view<double>(s);
        }, "threads"_a = 1)
        .def("copy_from", &State::copy_from, "other"_a, "threads"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("prepare", [](State& s, ComplexIn factors, int threads) {
            if (factors.size() != 2 * static_cast<std::size_t>(s.num_qubits()))
                throw std::invalid_argument("two factors per qubit are needed");
            nb::gil_scoped_release release;
            s.visit([&](auto* amps) { qsim::prepare_product(amps, s.num_qubits(), factors.data(), s.pages(), threads); });
        }, "factors"_a, "threads"_a)
        .def("norm", [](State& s, int threads) {
            nb::gil_scoped_release release;
            s.settle(threads);
            return s.visit([&](auto* amps) { return qsim::norm_squared(amps, s.num_qubits(), threads); });
        }, "threads"_a)
        .def("probabilities", [](State& s, std::vector<int> qubits, int threads) {
            auto out = make_array<double>(std::size_t{1} << qubits.size());
            {
                nb::gil_scoped_release release;
                s.settle(threads);
                s.visit([&](auto* amps) { qsim::marginal_probabilities(amps, s.num_qubits(), qubits, out.data(), threads); });
            }
            return out;
        }, "qubits"_a, "threads"_a)
        .def("sample", [](State& s, RealIn uniforms, int threads) {
            auto out = make_array<std::int64_t>(uniforms.size());
            {
                nb::gil_scoped_release release;
                s.settle(threads);
                s.visit([&](auto* amps) {
                    qsim::sample_states(amps, s.num_qubits(), uniforms.data(), uniforms.size(), out.data(), threads);
                });
            }
            return out;
        }, "uniforms"_a, "threads"_a)
        .def("collapse", [](State& s, qsim::index_t mask, qsim::index_t value, double scale, int threads) {
            nb::gil_scoped_release release;
            s.settle(threads);
            s.visit([&](auto* amps) { qsim::collapse(amps, s.num_qubits(), mask, value, scale, threads); });
        }, "mask"_a, "value"_a, "scale"_a, "threads"_a);

    nb::class_<TilePass>(m, "TileProgram")
        .def(nb::init<int, std::vector<int>, std::vector<int>, std::vector<int>, bool>(), "num_qubits"_a, "qubits"_a, "zero_qubits"_a,
             "one_qubits"_a, "single"_a)
        .def("add", &TilePass::add, "ops"_a)
        .def("finish", &TilePass::finish, nb::call_guard<nb::gil_scoped_release>())
        .def("run", nb::overload_cast<State&, int>(&TilePass::run), "state"_a, "threads"_a, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("sweep_types", &TilePass::sweep_types);
    qsim::bind_ozaki(m);
    qsim::bind_histories(m);
}
