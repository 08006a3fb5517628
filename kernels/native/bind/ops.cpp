// bind/ops.cpp -- Python bindings of operator lists: filling, rewriting, searching and reading them.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "bind/bind.hpp"
#include "ir/matrix_check.hpp"
#include "ir/op_list.hpp"
#include "planner/fuse.hpp"
#include "planner/tile_search.hpp"
#include "planner/zero_start.hpp"

using namespace nanobind::literals;

namespace qsim {

namespace {

template <class T>
void put(std::string& out, const T* values, std::size_t count) { out.append(reinterpret_cast<const char*>(values), count * sizeof *values); }

// All that a list holds, as bytes: equal for equal lists; nothing where that are more than `most`.
nb::object content(const OpList& ops, std::size_t most) {
    std::string out;
    for (std::size_t k = 0; k < ops.size(); ++k) {
        const OpHead& op = ops[k];
        const std::uint32_t shape[] = {static_cast<std::uint32_t>(op.kind), op.num_targets, op.num_controls, op.name, op.num_data};
        const std::size_t places = OpList::num_places(op);
        if (out.size() + op.num_data * sizeof(complex_t) + places * sizeof(std::uint32_t) > most) return nb::none();
        put(out, shape, std::size(shape));
        put(out, ops.targets(op), op.num_targets + op.num_controls);
        put(out, ops.data(op), op.num_data);
        put(out, ops.permutation(op), places);
    }
    return nb::bytes(out.data(), out.size());
}

// All that a plan depends on, as bytes: everything but the numbers. Of these it matters whether they are an H, a core or all 1 (a SWAP).
nb::bytes structure(const OpList& ops) {
    std::string out;
    for (std::size_t k = 0; k < ops.size(); ++k) {
        const OpHead& op = ops[k];
        const complex_t* data = ops.data(op);
        std::uint32_t special = 0;
        Matrix2 m;
        if (one_qubit_matrix(ops, op, m)) special = m == hadamard();
        else if (op.kind == Kind::kUnitary && op.num_targets == 2) special = mixes_of_pair(data) == 1;
        else if (op.kind == Kind::kPermutation) special = std::all_of(data, data + op.num_data, [](complex_t z) { return z == 1.0; });
        const std::uint32_t shape[] = {static_cast<std::uint32_t>(op.kind), op.num_targets, op.num_controls, op.name, op.num_data, special};
        put(out, shape, std::size(shape));
        put(out, ops.targets(op), op.num_targets + op.num_controls);
        put(out, ops.permutation(op), OpList::num_places(op));
    }
    return nb::bytes(out.data(), out.size());
}

// Control entries of qubits whose wanted values are the bits of `ctrl_state`, a Python integer of any width.
void add_controls(std::vector<std::int32_t>& qubits, const std::vector<int>& controls, nb::int_ ctrl_state) {
    for (std::size_t j = 0; j < controls.size(); j += 32) {
        const auto word = nb::cast<std::uint64_t>(nb::object((ctrl_state >> nb::int_(j)) & nb::int_(0xffffffffu)));
        for (std::size_t b = j; b < std::min(j + 32, controls.size()); ++b)
            qubits.push_back(controls[b] | (word >> (b - j) & 1 ? kControlOne : 0));
    }
}

void append(OpList& ops, int kind, std::vector<std::int32_t> qubits, const std::vector<int>& controls, nb::int_ ctrl_state,
            ComplexIn data, std::optional<IndexIn> permutation, const std::string& name) {
    const std::size_t num_targets = qubits.size();
    add_controls(qubits, controls, ctrl_state);
    const auto structure = static_cast<Kind>(kind);
    const bool parity = structure == Kind::kParity || structure == Kind::kPauli;
    if (num_targets > (parity ? 64 : 32)) throw std::invalid_argument("an operator has too many targets");
    if (parity && !controls.empty()) throw std::invalid_argument("a parity or a Pauli has controls");
    const std::size_t rows = parity ? 2 : std::size_t{1} << num_targets, squared = rows * rows;
    const std::size_t num_data = structure == Kind::kUnitary ? squared : structure == Kind::kHadamard ? 0 : rows;
    if (data.size() != num_data || (structure == Kind::kPermutation || structure == Kind::kPauli) != permutation.has_value())
        throw std::invalid_argument("an operator's data does not have its kind's shape");
    std::vector<std::uint32_t> places;
    if (permutation) {
        const std::size_t count = structure == Kind::kPauli ? num_targets : rows;
        if (permutation->size() != count) throw std::invalid_argument("a permutation does not have its operator's size");
        places.assign(permutation->data(), permutation->data() + count);
    }
    Block block;  // the array itself, which nobody writes
    if (num_data >= kSharedNumbers)
        block = Block(data.data(), [owner = new ComplexIn(data)](const complex_t*) {
            nb::gil_scoped_acquire gil;
            delete owner;
        });
    ops.append(structure, qubits.data(), num_targets, controls.size(), data.data(), num_data, places.data(), intern_name(name),
               std::move(block));
}

template <class T, class From>
nb::object array_of(const From* from, std::size_t size) {
    auto out = make_array<T>(size);
    std::copy(from, from + size, out.data());
    return nb::cast(out);
}

// The numbers of an operator: a copy of few, a read-only view of many.
nb::object numbers_of(const OpList& ops, const OpHead& op) {
    if (!OpList::is_shared(op)) return array_of<complex_t>(ops.data(op), op.num_data);
    nb::capsule owner(new Block(ops.block(op)), [](void* p) noexcept { delete static_cast<Block*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, const complex_t, nb::ndim<1>>(ops.data(op), {op.num_data}, owner));
}

// (kind, targets, controls, ctrl_state, data, permutation or None, name) of operator k.
nb::tuple get(const OpList& ops, std::size_t k) {
    if (k >= ops.size()) throw nb::index_error();
    const OpHead& op = ops[k];
    nb::list targets, controls;
    for (int j = 0; j < op.num_targets; ++j) targets.append(ops.targets(op)[j]);
    nb::object state = nb::int_(0);
    for (int j = 0; j < op.num_controls; ++j) {
        const std::int32_t entry = ops.controls(op)[j];
        controls.append(OpList::control_qubit(entry));
        if (OpList::control_value(entry)) state = state | (nb::int_(1) << nb::int_(j));
    }
    nb::object permutation = nb::none();
    if (OpList::num_places(op)) permutation = array_of<std::int64_t>(ops.permutation(op), OpList::num_places(op));
    return nb::make_tuple(static_cast<int>(op.kind), nb::tuple(targets), nb::tuple(controls), state,
                          numbers_of(ops, op), permutation, interned_name(op.name));
}

// Numbers of a Python list; false where one is not finite. Raises what Python raises for what is no number.
bool read_values(nb::list list, std::vector<complex_t>& out) {
    out.reserve(nb::len(list));
    bool finite = true;
    for (nb::handle item : list) {
        const double real = PyComplex_RealAsDouble(item.ptr()), imaginary = PyComplex_ImagAsDouble(item.ptr());
        if (PyErr_Occurred()) nb::raise_python_error();
        finite = finite && std::isfinite(real) && std::isfinite(imaginary);
        out.emplace_back(real, imaginary);
    }
    return finite;
}

OpList part(const OpList& ops, std::size_t begin, std::size_t end) {
    OpList out;
    for (std::size_t k = begin; k < std::min(end, ops.size()); ++k) out.append(ops, ops[k]);
    return out;
}

// A copy whose slots hold their numbers of `row`.
OpList filled(const OpList& ops, ComplexIn row) {
    OpList out = ops;
    const std::uint16_t slot = intern_name(kSlotName);
    for (std::size_t k = 0; k < out.size(); ++k) {
        if (out[k].name != slot) continue;
        complex_t* data = out.own_data(out[k]);
        const auto from = static_cast<std::size_t>(data[0].real());
        if (from + out[k].num_data > row.size()) throw std::invalid_argument("a row has too few numbers");
        std::copy_n(row.data() + from, out[k].num_data, data);
    }
    return out;
}

std::vector<std::tuple<index_t, index_t, OpList>> chosen(const OpList& ops, int num_qubits, int tile_qubits, index_t line,
                                                         double pass_seconds, bool moves, index_t before) {
    std::vector<std::tuple<index_t, index_t, OpList>> out;
    for (const TileChoice& choice : search_tiles(ops, num_qubits, {tile_qubits, line, pass_seconds, moves, before})) {
        OpList members;
        for (const std::int64_t k : choice.members) members.append(ops, ops[k]);
        out.emplace_back(choice.tile, choice.line, std::move(members));
    }
    return out;
}

std::pair<OpList, std::vector<int>> with_place(OpList ops, const std::vector<int>& place) { return {std::move(ops), place}; }

bool only_hadamards(const OpList& ops) {
    for (std::size_t k = 0; k < ops.size(); ++k) {
        if (Matrix2 m; !one_qubit_matrix(ops, ops[k], m) || m != hadamard()) return false;
    }
    return true;
}

std::vector<std::size_t> large_matrices(const OpList& ops, int num_targets) {
    std::vector<std::size_t> out;
    for (std::size_t k = 0; k < ops.size(); ++k)
        if (ops[k].kind == Kind::kUnitary && ops[k].num_targets >= num_targets) out.push_back(k);
    return out;
}

index_t mixed_mask(const OpList& ops) {
    index_t out = 0;
    for (std::size_t k = 0; k < ops.size(); ++k) out |= ops.mixed(ops[k]);
    return out;
}

// By how many powers of two the number of amplitudes other than 0 may grow.
int spread(const OpList& ops) {
    int out = 0;
    for (std::size_t k = 0; k < ops.size(); ++k)
        if (ops[k].kind == Kind::kUnitary || ops[k].kind == Kind::kHadamard) out += ops[k].num_targets;
        else if (ops[k].kind == Kind::kPauli) ++out;
    return out;
}

nb::dict name_counts(const OpList& ops) {
    std::map<std::uint16_t, int> counts;
    std::vector<std::uint16_t> order;
    for (std::size_t k = 0; k < ops.size(); ++k)
        if (!counts[ops[k].name]++) order.push_back(ops[k].name);
    nb::dict out;
    for (const std::uint16_t name : order) out[interned_name(name).c_str()] = counts[name];
    return out;
}

}  // namespace

void bind_ops(nb::module_& m) {
    nb::class_<GateTable>(m, "GateTable")
        .def(nb::init<>())
        .def("add", [](GateTable& table, int kind, int num_targets, int num_controls, std::uint32_t num_values, ComplexIn values,
                       const std::vector<std::uint32_t>& permutation, const std::string& name) {
            return table.add(static_cast<Kind>(kind), num_targets, num_controls, num_values,
                             std::vector<complex_t>(values.data(), values.data() + values.size()), permutation, name);
        }, "kind"_a, "num_targets"_a, "num_controls"_a, "num_values"_a, "values"_a, "permutation"_a, "name"_a);

    nb::class_<OpList>(m, "OpList")
        .def(nb::init<>()).def("__len__", &OpList::size)
        .def("append", &append, "kind"_a, "targets"_a, "controls"_a, "ctrl_state"_a, "data"_a, "permutation"_a.none(), "name"_a)
        .def("get", &get, "number"_a)
        .def("content", &content, "most"_a)
        .def("structure", &structure).def("number", &OpList::number).def("with_data", &OpList::with_data, "from"_a)
        .def("extend", [](OpList& ops, const OpList& more) { ops.append(more); }, "more"_a)
        .def("extend_rows", [](OpList& ops, const GateTable& table, const std::vector<std::uint32_t>& rows,
                               const std::vector<std::int32_t>& qubits, nb::list values) {
            std::vector<complex_t> numbers;
            if (!read_values(values, numbers)) return false;
            table.append_to(ops, rows, qubits, numbers.data(), numbers.size());
            return true;
        }, "table"_a, "rows"_a, "qubits"_a, "values"_a, "Appends rows of a gate table; False, and nothing, where a value is not finite.")
        .def("append_unitary", [](OpList& ops, MatrixIn matrix, const std::vector<std::int32_t>& targets, const std::string& name) {
            const bool square = targets.size() <= 32 && matrix.shape(0) == std::size_t{1} << targets.size() && matrix.shape(1) == matrix.shape(0);
            return square ? append_unitary(ops, matrix.data(), targets, intern_name(name)) : HUGE_VAL;
        }, "matrix"_a, "targets"_a, "name"_a, "Appends a matrix within UNITARY_ROUNDING of a unitary one; returns its distance.")
        .def("filled", &filled, "row"_a).def("part", &part, "begin"_a, "end"_a)
        .def("touched_qubits", &OpList::touched_qubits, "all"_a)
        .def("relabel_swaps", [](const OpList& ops, std::vector<int> place) { return with_place(relabel_swaps(ops, place), place); },
             "place"_a)
        .def("collect_rotations", [](const OpList& ops, std::vector<int> place, int max_direction) {
            return with_place(collect_rotations(ops, place, max_direction), place);
        }, "place"_a, "max_direction"_a)
        .def("fuse", &fuse, "num_qubits"_a, "max_fused_qubits"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("absorb_product", [](const OpList& ops, int num_qubits, bool basis_states_only) {
            std::vector<complex_t> factors(2 * num_qubits);
            for (int q = 0; q < num_qubits; ++q) factors[2 * q] = 1;
            OpList left = absorb_product(ops, factors, basis_states_only);
            index_t live = 0, ones = 0;  // qubits below 64 that may read 0 and 1, and that read 1
            for (int q = 0; q < std::min(num_qubits, 64); ++q) {
                live |= index_t{factors[2 * q] != 0.0 && factors[2 * q + 1] != 0.0} << q;
                ones |= index_t{factors[2 * q] == 0.0} << q;
            }
            return nb::make_tuple(array_of<complex_t>(factors.data(), factors.size()), std::move(left), live, ones);
        }, "num_qubits"_a, "basis_states_only"_a = false)
        .def("split_live", &split_live, "live"_a)
        .def("longest_zero_qubits", &longest_zero_qubits, "qubits"_a, "count"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("search_tiles", &chosen, "num_qubits"_a, "tile_qubits"_a, "line"_a, "pass_seconds"_a = 0.0, "moves"_a = false, "before"_a = 0,
             nb::call_guard<nb::gil_scoped_release>())
        .def("work", [](const OpList& ops) {
            const TileWork work = tile_work(ops);
            return std::make_tuple(work.flops, work.sweeps, work.phase_layers, work.mixes, work.wide, work.wide_flops);
        })
        .def("large_matrices", &large_matrices, "num_targets"_a)
        .def("only_hadamards", &only_hadamards).def("mixed_mask", &mixed_mask).def("spread", &spread)
        .def("name_counts", &name_counts);
    m.attr("UNITARITY_TOLERANCE") = kUnitarityTolerance;
    m.attr("UNITARY_ROUNDING") = kUnitaryRounding;
    m.def("structure_of", [](ComplexIn matrix, std::size_t size) {
        if (matrix.size() != size * size) throw std::invalid_argument("a matrix does not have the size given");
        std::vector<std::int64_t> place(size);
        const Kind kind = structure_of(matrix.data(), size, place.data());
        return nb::make_tuple(static_cast<int>(kind), array_of<std::int64_t>(place.data(), size));
    }, "matrix"_a, "size"_a, "(kind, row of each column's entry) of a row-major matrix; see ir/matrix_check.hpp.");
    m.def("distance_from_unitary", [](ComplexIn matrix, std::size_t size) {
        if (matrix.size() != size * size) throw std::invalid_argument("a matrix does not have the size given");
        return distance_from_unitary(matrix.data(), size);
    }, "matrix"_a, "size"_a, "How far a row-major matrix is from a unitary one; see ir/matrix_check.hpp.");
    m.def("split", [](const std::vector<complex_t>& u) {
        const Split parts = split({u.at(0), u.at(1), u.at(2), u.at(3)});
        const auto list = [](const Matrix2& m2) { return std::vector<complex_t>(m2.begin(), m2.end()); };
        return std::make_tuple(list(parts.left), list(parts.core), list(parts.right));
    }, "matrix"_a, "Row-major (left, core, right) of a row-major 2 x 2 unitary; see planner/fuse.hpp.");
}

}  // namespace qsim
