// cpu/tile/pass.cpp -- takes operators of a list, chooses all qubits of the tile, compiles and runs.
#include "cpu/tile/pass.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "cpu/dispatch/kernel_table.hpp"
#include "cpu/tile/run.hpp"
#include "cpu/tuning.hpp"

namespace qsim {

namespace {

bool among(const std::vector<int>& qubits, int q) { return std::find(qubits.begin(), qubits.end(), q) != qubits.end(); }

}  // namespace

TilePass::TilePass(int num_qubits, std::vector<int> qubits, std::vector<int> zero_qubits, std::vector<int> one_qubits, bool single)
    : num_qubits_(std::max(num_qubits, kPaddedQubits)), qubits_(std::move(qubits)), zero_qubits_(std::move(zero_qubits)),
      one_qubits_(std::move(one_qubits)), single_(single) {
    for (int q = num_qubits; q < num_qubits_; ++q) zero_qubits_.push_back(q);
}

void TilePass::add(const OpList& ops) {
    for (std::size_t k = 0; k < ops.size(); ++k) {
        const OpHead& head = ops[k];
        TileOp op{head.kind, {}, {}, 0, {}, {}, 0, 0, 0};
        op.targets.assign(ops.targets(head), ops.controls(head));
        for (int j = 0; j < head.num_controls; ++j) {
            const std::int32_t entry = ops.controls(head)[j];
            op.controls.push_back(OpList::control_qubit(entry));
            op.ctrl_state |= index_t(OpList::control_value(entry)) << j;
        }
        op.data = Numbers(ops.block(head), head.num_data);
        op.permutation.assign(ops.permutation(head), ops.permutation(head) + OpList::num_places(head));
        op.mixed = ops.mixed(head);
        for (int j = 0; head.kind == Kind::kPauli && j < head.num_targets; ++j)
            op.z |= index_t{ops.letters(head)[j] != kLetterX} << op.targets[j];
        check(op);
        ops_.push_back(std::move(op));
    }
}

void TilePass::finish() {
    if (double_ || float_) return;
    if (single_) float_ = compile<float>();
    else double_ = compile<double>();
    ops_.clear();
}

void TilePass::run(State& state, int threads) {
    finish();
    if (state.single() != single_ || state.padded_qubits() != num_qubits_)
        throw std::invalid_argument("a program runs on states of its own width and precision");
    const bool prefetch = state.bytes() >= kPrefetchBytes;
    if (single_) run_program(*float_, static_cast<float*>(state.data()), state.pages(), threads, prefetch);
    else run_program(*double_, static_cast<double*>(state.data()), state.pages(), threads, prefetch);
}

void TilePass::run(State& state, TileScratch& scratch) const {
    if (single_) run_program(*float_, static_cast<float*>(state.data()), state.pages(), scratch.floats);
    else run_program(*double_, static_cast<double*>(state.data()), state.pages(), scratch.doubles);
}

std::vector<int> TilePass::sweep_types() {
    finish();
    std::vector<int> out;
    for (const auto& sweep : single_ ? float_->sweeps : double_->sweeps) out.push_back(static_cast<int>(sweep.type));
    return out;
}

void TilePass::check(const TileOp& op) {
    const auto in_state = [&](int q) { return q >= 0 && q < num_qubits_; };
    if (!std::all_of(op.targets.begin(), op.targets.end(), in_state) || !std::all_of(op.controls.begin(), op.controls.end(), in_state))
        throw std::invalid_argument("an operator acts outside the state");
    const bool diagonal = is_diagonal(op.kind);
    const bool pauli = op.kind == Kind::kPauli;
    if (!diagonal && !pauli && op.kind != Kind::kHadamard) largest_ = std::max(largest_, static_cast<int>(op.targets.size()));
    for (int q : op.targets)
        if (op.mixed >> q & 1 && !among(qubits_, q)) throw std::invalid_argument("an operator mixes a qubit outside the tile");
    const std::size_t limit = op.kind == Kind::kParity || pauli ? kMaxParity : diagonal ? kMaxDiagonal : kMaxOpQubits;
    if (op.targets.size() > limit) throw std::invalid_argument("an operator has more than " + std::to_string(limit) + " targets");
}

// The tile's qubits and the lowest ones, then others until the largest matrix has room beside the lanes and two columns: lowest
// qubits first, but those of one known value last.
std::vector<int> TilePass::tile_qubits(int lanes) const {
    std::vector<bool> inside(num_qubits_, false);
    for (int q : qubits_) inside[q] = true;
    for (int q = 0; q + 1 < lanes; ++q) inside[q] = true;
    const int room = std::max(lanes, largest_ ? largest_ + lanes + 1 : 0);
    const int size = std::min(num_qubits_, std::max<int>(qubits_.size(), room));
    int count = static_cast<int>(std::count(inside.begin(), inside.end(), true));
    for (const bool fixed : {false, true})
        for (int q = 0; q < num_qubits_ && count < size; ++q)
            if (!inside[q] && (among(zero_qubits_, q) || among(one_qubits_, q)) == fixed) inside[q] = true, ++count;
    std::vector<int> tile;
    for (int q = 0; q < num_qubits_; ++q)
        if (inside[q]) tile.push_back(q);
    return tile;
}

template <class Real>
std::unique_ptr<TileProgram<Real>> TilePass::compile() {
    const int lanes = lane_bits(single_);
    const std::vector<int> tile = tile_qubits(lanes);
    if (static_cast<int>(tile.size()) > kMaxTile) throw std::invalid_argument("a tile has more than 20 qubits");
    TileCompiler<Real> compiler(num_qubits_, tile, lanes, kBlockBitsDouble + (single_ ? 1 : 0));
    for (auto& op : ops_) compiler.add(std::move(op));
    auto program = std::make_unique<TileProgram<Real>>(compiler.finish());
    std::vector<int> outer;
    for (int q : program->outer) {
        if (among(one_qubits_, q)) program->fixed |= index_t{1} << q;
        else if (!among(zero_qubits_, q)) outer.push_back(q);
    }
    program->outer = std::move(outer);
    return program;
}

}  // namespace qsim
