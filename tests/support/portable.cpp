// portable.cpp -- the extension's portable kernels against naive loops, without Python: for processors that only an emulator has.
//
// usage: portable; prints one line a check and ends with 1 where one fails. Built and run by .ci/aarch64.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "cpu/dispatch/kernel_table.hpp"
#include "cpu/ozaki/ozaki.hpp"
#include "cpu/stack/stack.hpp"
#include "cpu/state/measure.hpp"
#include "cpu/state/pauli.hpp"
#include "cpu/state/state.hpp"
#include "cpu/tile/pass.hpp"
#include "ir/op_list.hpp"
#include "planner/fuse.hpp"
#include "sampling/stream.hpp"

using namespace qsim;

namespace {

constexpr int kQubits = 10, kOps = 60;
constexpr index_t kSize = index_t{1} << kQubits;

int failures = 0;

void check(const std::string& name, double distance, double tolerance) {
    const bool holds = distance <= tolerance;
    std::printf("%-34s %-6s distance %.1e, tolerance %.1e\n", name.c_str(), holds ? "ok" : "FAILED", distance, tolerance);
    failures += !holds;
}

struct NaiveOp {
    Kind kind;
    std::vector<int> targets, controls, values;
    std::vector<complex_t> data;
    std::vector<std::uint32_t> permutation;
};

using Random = std::mt19937_64;
using Vector = std::vector<complex_t>;

int below(Random& random, int count) { return static_cast<int>(random() % count); }

complex_t normal(Random& random) {
    std::normal_distribution<double> number;
    return {number(random), number(random)};
}

// A unitary matrix by Gram and Schmidt.
Vector random_unitary(Random& random, std::size_t size) {
    Vector u(size * size);
    for (std::size_t row = 0; row < size; ++row) {
        for (std::size_t c = 0; c < size; ++c) u[row * size + c] = normal(random);
        for (std::size_t other = 0; other < row; ++other) {
            complex_t overlap = 0;
            for (std::size_t c = 0; c < size; ++c) overlap += std::conj(u[other * size + c]) * u[row * size + c];
            for (std::size_t c = 0; c < size; ++c) u[row * size + c] -= overlap * u[other * size + c];
        }
        double norm = 0;
        for (std::size_t c = 0; c < size; ++c) norm += std::norm(u[row * size + c]);
        for (std::size_t c = 0; c < size; ++c) u[row * size + c] /= std::sqrt(norm);
    }
    return u;
}

// An operator that changes qubits of `tile` alone; its controls and the targets of a diagonal are any qubits.
NaiveOp random_op(Random& random, const std::vector<int>& tile) {
    NaiveOp op;
    op.kind = static_cast<Kind>(below(random, 4));
    std::vector<int> inside = tile, any(kQubits);
    for (int q = 0; q < kQubits; ++q) any[q] = q;
    std::shuffle(inside.begin(), inside.end(), random);
    std::shuffle(any.begin(), any.end(), random);
    const int count = 1 + below(random, 4);
    for (int j = 0; j < count; ++j) op.targets.push_back(op.kind == Kind::kDiagonal ? any[j] : inside[j]);
    for (int q : any)
        if (std::find(op.targets.begin(), op.targets.end(), q) == op.targets.end() && op.controls.size() < 2 && below(random, 4) == 0)
            op.controls.push_back(q), op.values.push_back(below(random, 2));
    const std::size_t rows = std::size_t{1} << count;
    if (op.kind == Kind::kUnitary) op.data = random_unitary(random, rows);
    if (op.kind == Kind::kDiagonal || op.kind == Kind::kPermutation)
        for (std::size_t j = 0; j < rows; ++j) op.data.push_back(std::polar(1.0, std::arg(normal(random))));
    if (op.kind == Kind::kPermutation) {
        for (std::uint32_t j = 0; j < rows; ++j) op.permutation.push_back(j);
        std::shuffle(op.permutation.begin(), op.permutation.end(), random);
    }
    return op;
}

// The matrix entry of an operator, by its definition.
complex_t entry(const NaiveOp& op, index_t row, index_t column) {
    switch (op.kind) {
        case Kind::kDiagonal: return row == column ? op.data[row] : 0;
        case Kind::kPermutation: return row == op.permutation[column] ? op.data[column] : 0;
        case Kind::kUnitary: return op.data[(row << op.targets.size()) + column];
        default: return std::pow(2, -0.5 * op.targets.size()) * (__builtin_popcountll(row & column) & 1 ? -1 : 1);
    }
}

Vector act(const NaiveOp& op, const Vector& state) {
    const int count = static_cast<int>(op.targets.size());
    Vector out(state.size());
    for (index_t i = 0; i < state.size(); ++i) {
        bool acts = true;
        for (std::size_t j = 0; j < op.controls.size(); ++j) acts = acts && bit(i, op.controls[j]) == op.values[j];
        if (!acts) {
            out[i] = state[i];
            continue;
        }
        const index_t row = extract(i, op.targets.data(), count), rest = i ^ deposit(row, op.targets.data(), count);
        for (index_t column = 0; column < index_t{1} << count; ++column)
            out[i] += entry(op, row, column) * state[rest | deposit(column, op.targets.data(), count)];
    }
    return out;
}

void append(OpList& list, const NaiveOp& op) {
    std::vector<std::int32_t> qubits(op.targets.begin(), op.targets.end());
    for (std::size_t j = 0; j < op.controls.size(); ++j) qubits.push_back(op.controls[j] | (op.values[j] ? kControlOne : 0));
    list.append(op.kind, qubits.data(), op.targets.size(), op.controls.size(), op.data.data(), op.data.size(), op.permutation.data(),
                intern_name("op"));
}

template <class Amps>
double distance(const Amps& amps, const Vector& exact) {
    double sum = 0;
    for (index_t i = 0; i < exact.size(); ++i) sum += std::norm(complex_t(amps[i]) - exact[i]);
    return std::sqrt(sum);
}

struct Circuit {
    OpList list;
    Vector state;  // after it, by naive loops
};

Circuit random_circuit(Random& random, const std::vector<int>& tile) {
    Circuit out;
    out.state.assign(kSize, 0);
    out.state[0] = 1;
    for (int k = 0; k < kOps; ++k) {
        const NaiveOp op = random_op(random, tile);
        append(out.list, op);
        out.state = act(op, out.state);
    }
    return out;
}

double run(const OpList& list, const std::vector<int>& tile, const Vector& exact, bool single) {
    State state(kQubits, single);
    TilePass pass(kQubits, tile, {}, {}, single);
    pass.add(list);
    pass.run(state, 2);
    state.settle(1);
    return state.visit([&](auto* amps) { return distance(amps, exact); });
}

void check_tiles(Random& random) {
    const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    for (const std::vector<int>& tile : {all, {0, 2, 5, 6, 8, 9}, {5, 6, 7, 9}}) {
        const std::string name = " of " + std::to_string(tile.size()) + " qubits";
        const Circuit circuit = random_circuit(random, tile);
        check("tile pass" + name + ", double", run(circuit.list, tile, circuit.state, false), kOps * 0x1p-49);
        check("tile pass" + name + ", single", run(circuit.list, tile, circuit.state, true), kOps * 0x1p-20);
        check("fused" + name, run(fuse(circuit.list, kQubits, 3), tile, circuit.state, false), kOps * 0x1p-49);
    }
}

void check_stack(Random& random) {
    const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const Circuit circuit = random_circuit(random, all);
    StackProgram program(kQubits, all);
    for (std::size_t k = 0; k < circuit.list.size(); ++k) program.add(circuit.list, circuit.list[k], false);
    program.finish();
    Vector states(3 * kSize);
    for (int row = 0; row < 3; ++row) states[row * kSize] = 1;
    program.run(nullptr, 0, 3, states.data(), 2);
    for (int row = 0; row < 3; ++row)
        check("stack, row " + std::to_string(row), distance(states.data() + row * kSize, circuit.state), kOps * 0x1p-49);
}

void check_measure(Random& random) {
    const Circuit circuit = random_circuit(random, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    const Vector& state = circuit.state;
    check("norm", std::abs(norm_squared(state.data(), kQubits, 2) - 1), 0x1p-45);
    const std::vector<int> qubits{7, 0, 4};
    std::vector<double> exact(8), out(8);
    for (index_t i = 0; i < kSize; ++i) exact[extract(i, qubits.data(), 3)] += std::norm(state[i]);
    marginal_probabilities(state.data(), kQubits, qubits, out.data(), 2);
    double most = 0;
    for (int j = 0; j < 8; ++j) most = std::max(most, std::abs(out[j] - exact[j]));
    check("marginal", most, 0x1p-45);
    std::vector<index_t> x, z;
    for (int k = 0; k < 20; ++k) x.push_back(k < 10 ? 0 : random() % kSize), z.push_back(random() % kSize);
    std::vector<double> values(x.size());
    pauli_expectations(state.data(), kQubits, x.data(), z.data(), x.size(), values.data(), 2);
    most = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
        complex_t sum = 0;
        const complex_t powers[] = {1, {0, 1}, -1, {0, -1}};
        for (index_t i = 0; i < kSize; ++i)
            sum += std::conj(state[i ^ x[k]]) * state[i] * (__builtin_popcountll(i & z[k]) & 1 ? -1.0 : 1.0);
        most = std::max(most, std::abs(values[k] - (sum * powers[__builtin_popcountll(x[k] & z[k]) & 3]).real()));
    }
    check("Pauli strings", most, 0x1p-45);
}

std::int64_t balanced(std::int64_t value, std::int64_t m) {
    const std::int64_t rest = (value % m + m) % m;
    return rest > m / 2 ? rest - m : rest;
}

void check_ozaki(Random& random) {
    const OzakiKernels& kernels = ozaki_kernels();
    const std::int64_t m = 241, root = 64;  // 64^2 = 17 * 241 - 1
    const OzakiModulus modulus{241, 1.0 / 241, 64, 0, 0, 0, 0};
    constexpr index_t kRows = 48, kDepth = 40, kColumns = 11;
    std::vector<double> re(kDepth * kColumns), im(re.size());
    for (double& value : re) value = static_cast<double>(static_cast<std::int64_t>(random() % (1ull << 45)) - (1ll << 44));
    for (double& value : im) value = static_cast<double>(static_cast<std::int64_t>(random() % (1ull << 45)) - (1ll << 44));
    AlignedVector<std::int8_t> plus(re.size()), minus(re.size());
    kernels.encode(modulus, re.data(), im.data(), re.size(), plus.data(), minus.data());
    int wrong = 0;
    for (std::size_t j = 0; j < re.size(); ++j) {
        const auto a = static_cast<std::int64_t>(re[j]) % m, b = static_cast<std::int64_t>(im[j]) % m * root;
        wrong += plus[j] != balanced(a + b, m) || minus[j] != balanced(a - b, m);
    }
    check("residues", wrong, 0);
    std::vector<std::int8_t> plane(kRows * kDepth);
    for (auto& value : plane) value = static_cast<std::int8_t>(below(random, 241) - 120);
    AlignedVector<std::uint8_t> packed(kRows * kDepth);
    ozaki_pack(plane.data(), kRows, kDepth, packed.data());
    AlignedVector<std::int32_t> sums(kRows * kColumns);
    kernels.product(packed.data(), kRows, kDepth, plus.data(), kColumns, sums.data());
    AlignedVector<std::int8_t> reduced(sums.size());
    kernels.reduce(modulus, sums.data(), sums.size(), reduced.data());
    wrong = 0;
    for (index_t c = 0; c < kColumns; ++c)
        for (index_t row = 0; row < kRows; ++row) {
            std::int64_t sum = 0;
            for (index_t k = 0; k < kDepth; ++k) sum += plane[row * kDepth + k] * plus[c * kDepth + k];
            wrong += sums[c * kRows + row] != sum || reduced[c * kRows + row] != balanced(sum, m);
        }
    check("INT8 product and its residues", wrong, 0);
}

// NumPy: default_rng(SeedSequence(7, spawn_key=(3,))).random(3)
void check_stream() {
    Stream stream({7}, key_words(3));
    const double exact[] = {0x1.f6f30392f585ep-1, 0x1.f3503cea60a40p-5, 0x1.7fe9301368c00p-7};
    double most = 0;
    for (const double value : exact) most = std::max(most, std::abs(stream.uniform() - value));
    check("NumPy's stream", most, 0);
}

}  // namespace

int main() {
    Random random(11);
    std::printf("kernels: %s, %s; lanes of a double: %d\n", tile_kernels().name, ozaki_kernels().name, tile_kernels().lanes_double);
    check_tiles(random);
    check_stack(random);
    check_measure(random);
    check_ozaki(random);
    check_stream();
    return failures != 0;
}
