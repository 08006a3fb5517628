// bind/angles.cpp -- phases of a GPU's tile pass as integers, one turn = 2^64: sums of any number of them round nothing.
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "bind/bind.hpp"
#include "planner/fuse.hpp"

using namespace nanobind::literals;

namespace qsim {

namespace {

using angle_t = std::uint64_t;  // wraps at a turn

constexpr double kTurn = 0x1p64, kTwoPi = 6.283185307179586;
constexpr angle_t kEighth = angle_t{1} << 61, kQuarter = angle_t{1} << 62, kHalf = angle_t{1} << 63;
constexpr double kUnitary = 1e-13;
constexpr int kMostTermQubits = 6;  // a diagonal on more qubits has over 64 terms and is looked up in memory instead

// Exact for multiples of a quarter turn.
angle_t angle_of(complex_t z) {
    const double angle = std::nearbyint(std::atan2(z.imag(), z.real()) / kTwoPi * kTurn);
    return angle < 0 ? static_cast<angle_t>(static_cast<std::int64_t>(angle)) : static_cast<angle_t>(angle);
}

// A rotation by at most an eighth of a turn, then exact quarter turns.
complex_t phase_of(angle_t angle) {
    const double rest = static_cast<double>(static_cast<std::int64_t>(((angle + kEighth) & (kQuarter - 1)) - kEighth)) * (kTwoPi / kTurn);
    const double c = std::cos(rest), s = std::sin(rest);
    switch ((angle + kEighth) >> 62) {
        case 0: return {c, s};
        case 1: return {-s, c};
        case 2: return {-c, -s};
        default: return {s, -c};
    }
}

nb::object phases_of(nb::list angles) {
    auto out = make_array<complex_t>(nb::len(angles));
    complex_t* to = out.data();
    for (nb::handle angle : angles) *to++ = phase_of(PyLong_AsUnsignedLongLongMask(angle.ptr()));
    if (PyErr_Occurred()) nb::raise_python_error();
    return nb::cast(out);
}

std::vector<angle_t> angles_of(ComplexIn values) {
    std::vector<angle_t> out(values.size());
    std::transform(values.data(), values.data() + values.size(), out.begin(), angle_of);
    return out;
}

bool is_unitary(const complex_t* m) {
    const double off = std::abs(m[0] * std::conj(m[2]) + m[1] * std::conj(m[3]));
    return std::max({std::abs(std::norm(m[0]) + std::norm(m[1]) - 1), std::abs(std::norm(m[2]) + std::norm(m[3]) - 1), off}) < kUnitary;
}

// (qubit, before, all after, 1 after, cos, sin): u = e^(i all) diag(1, e^(i after)) [[cos, -sin], [sin, cos]] diag(1, e^(i before)).
// The signs of cos and sin are such that no phase is half a turn or more: real matrices have none, whatever their angle.
nb::object rotation(int qubit, const complex_t* u) {
    double cosine = std::abs(u[0]), sine = std::abs(u[2]);
    angle_t first = cosine ? angle_of(u[0]) : 0, second = sine ? angle_of(u[2]) : 0;
    angle_t before = cosine >= sine ? angle_of(u[3]) - second : angle_of(-u[1]) - first;
    const double norm = std::hypot(cosine, sine);
    cosine /= norm, sine /= norm;
    const auto beyond = [](angle_t angle) { return angle > kQuarter && angle <= 3 * kQuarter; };
    if (beyond(first)) first += kHalf, before += kHalf, cosine = -cosine;
    if (beyond(second)) second += kHalf, before += kHalf, sine = -sine;
    return nb::make_tuple(qubit, before, first, second - first, cosine, sine);
}

// (qubits, angle of each product of bits) of a diagonal, its controls included; none where its entries are no phases, or too many.
nb::object diagonal(const OpList& ops, const OpHead& op) {
    const int k = op.num_targets;
    const complex_t* data = ops.data(op);
    index_t ones = 0, zeros = 0;  // controls
    for (int j = 0; j < op.num_controls; ++j) {
        const std::int32_t entry = ops.controls(op)[j];
        (OpList::control_value(entry) ? ones : zeros) |= index_t{1} << OpList::control_qubit(entry);
    }
    if (k + __builtin_popcountll(zeros) > kMostTermQubits) return nb::none();
    angle_t angles[1 << kMostTermQubits];
    for (int j = 0; j < 1 << k; ++j) {
        if (!(std::abs(std::abs(data[j]) - 1) < kUnitary)) return nb::none();
        angles[j] = angle_of(data[j]);
    }
    for (int b = 0; b < k; ++b)  // Moebius transform
        for (int j = 0; j < 1 << k; ++j)
            if (j >> b & 1) angles[j] -= angles[j ^ 1 << b];
    nb::dict terms;
    index_t used = 0;
    for (int j = 0; j < 1 << k; ++j) {
        if (!angles[j]) continue;
        index_t key = ones;
        for (int b = 0; b < k; ++b)
            if (j >> b & 1) key |= index_t{1} << ops.targets(op)[b];
        used |= key | zeros;
        // 1 - x for each control that must be 0: inclusion and exclusion over their subsets
        for (index_t subset = zeros;; subset = (subset - 1) & zeros) {
            terms[nb::int_(key | subset)] = nb::int_(__builtin_popcountll(subset) & 1 ? -angles[j] : angles[j]);
            if (!subset) break;
        }
    }
    return nb::make_tuple(used, terms);
}

// (qubits, angle where their parity is even, where it is odd); none where the factors are no phases.
nb::object parity(const OpList& ops, const OpHead& op) {
    const complex_t* data = ops.data(op);
    for (int j = 0; j < 2; ++j)
        if (!(std::abs(std::abs(data[j]) - 1) < kUnitary)) return nb::none();
    return nb::make_tuple(ops.used(op), angle_of(data[0]), angle_of(data[1]));
}

nb::list tile_items(const OpList& ops) {
    nb::list out;
    for (std::size_t k = 0; k < ops.size(); ++k) {
        const OpHead& op = ops[k];
        const bool alone = op.kind == Kind::kUnitary && op.num_targets == 1 && op.num_controls == 0;
        if (op.kind == Kind::kDiagonal) out.append(diagonal(ops, op));
        else if (op.kind == Kind::kParity) out.append(parity(ops, op));
        else if (alone && is_unitary(ops.data(op))) out.append(rotation(ops.targets(op)[0], ops.data(op)));
        else out.append(nb::none());
    }
    return out;
}

}  // namespace

void bind_angles(nb::module_& m) {
    m.def("angles_of", &angles_of, "values"_a);
    m.def("phases_of", &phases_of, "angles"_a);
    m.def("tile_items", &tile_items, "ops"_a,
          "Of each operator (qubits, terms), (qubits, even, odd) or (qubit, before, all after, 1 after, cos, sin); None where it is none of them; "
          "see engines/cuda/tile/items.py.");
}

}  // namespace qsim
