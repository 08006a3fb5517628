// cpu/tile/compile.cpp -- schedules the operators of a tile pass into sweeps.
//
// Rotations that may act now go first, several to a sweep; then matrices and permutations; diagonals wait until nothing
// else can act, so that one phase sweep takes as many of them as commute to the same place.
#include "cpu/tile/compile.hpp"

#include <algorithm>
#include <cmath>

namespace qsim {

namespace {

constexpr std::size_t kLookAhead = 1024;  // operators left behind in one round: without a limit, time grows as their square

}  // namespace

template <class Real>
TileCompiler<Real>::TileCompiler(int num_qubits, std::vector<int> tile, int lane_bits, int block_bits) {
    program_.num_qubits = num_qubits;
    program_.num_tile = static_cast<int>(tile.size());
    program_.lane_bits = lane_bits;
    program_.low_bits = std::min(kPhaseLow, program_.num_tile);
    program_.block_bits = std::min(block_bits, program_.num_tile);
    position_.assign(num_qubits, -1);
    for (int p = 0; p < program_.num_tile; ++p) {
        position_[tile[p]] = p;
        qubit_.push_back(tile[p]);
        tile_mask_ |= index_t{1} << tile[p];
    }
    for (int q = 0; q < num_qubits; ++q)
        if (position_[q] < 0) program_.outer.push_back(q);
    program_.gather = offsets();
}

template <class Real>
void TileCompiler<Real>::add(TileOp op) {
    if (op.kind == Kind::kHadamard) {  // one operator per target: they commute, and so do their controlled forms
        const double r = std::sqrt(0.5);
        for (int target : op.targets) {
            TileOp one{Kind::kUnitary, {target}, op.controls, op.ctrl_state, std::vector<complex_t>{r, r, r, -r}, {}, 0, 0, 0};
            expand(std::move(one));
        }
        return;
    }
    if (op.kind == Kind::kPermutation && op.targets.size() == 1) {  // X with phases is a matrix, unless it is a controlled X
        if (op.controls.empty() || !is_trivial(op.data) || op.permutation[0] == 0) {
            std::vector<complex_t> matrix(4);
            matrix[2 * op.permutation[0]] = op.data[0];
            matrix[2 * op.permutation[1] + 1] = op.data[1];
            op.data = matrix;
            op.permutation.clear();
            op.kind = Kind::kUnitary;
        }
    }
    expand(std::move(op));
}

template <class Real>
void TileCompiler<Real>::expand(TileOp op) {
    for (int q : op.targets) op.used |= index_t{1} << q;
    if (!is_diagonal(op.kind) && op.kind != Kind::kPauli) op.mixed = op.used;
    for (int q : op.controls) op.used |= index_t{1} << q;
    remaining_.push_back(ops_.size());
    ops_.push_back(std::move(op));
}

template <class Real>
bool TileCompiler<Real>::as_rotation(const TileOp& op, Rotation& rotation) const {
    if (op.kind != Kind::kUnitary || op.targets.size() != 1 || !op.controls.empty()) return false;
    const auto& m = op.data;
    if (m[0].imag() != 0 || m[3].imag() != 0) return false;
    const bool real = m[1].imag() == 0 && m[2].imag() == 0, imaginary = m[1].real() == 0 && m[2].real() == 0;
    if (!real && !imaginary) return false;
    rotation = {m[0].real(), real ? m[1].real() : m[1].imag(), real ? m[2].real() : m[2].imag(), m[3].real(), !real,
                position_[op.targets[0]]};
    // only orthogonal pairs have the two-operation form: own1 = +-own0 and other1 = -+other0 (imaginary: both equal)
    const double sum = rotation.imaginary ? std::abs(rotation.own0 - rotation.own1) + std::abs(rotation.other0 - rotation.other1)
                                          : std::min(std::abs(rotation.own0 - rotation.own1) + std::abs(rotation.other0 + rotation.other1),
                                                     std::abs(rotation.own0 + rotation.own1) + std::abs(rotation.other0 - rotation.other1));
    return sum == 0;
}

template <class Real>
bool TileCompiler<Real>::is_swap(const TileOp& op) const {
    return op.kind == Kind::kPermutation && op.targets.size() == 2 && op.controls.empty() && is_trivial(op.data) &&
           op.permutation == std::vector<std::uint32_t>{0, 2, 1, 3};
}

// Adds a rotation to one that has its direction and commutes with it, or to none; false where another operator is in its way.
template <class Real>
bool TileCompiler<Real>::join_group(std::vector<PauliGroup>& groups, const TileOp& op, index_t& rotating) const {
    for (PauliGroup& group : groups) {
        if (!(op.used & group.used)) continue;
        const index_t relative = op.z ^ group.rotations[0]->z;
        if (group.rotations[0]->mixed != op.mixed || __builtin_popcountll(relative & op.mixed) & 1) return false;
        if (op.used & rotating & ~group.used) return false;
        index_t rest = relative;
        for (const index_t mask : group.basis) rest = std::min(rest, rest ^ mask);
        if (rest && group.basis.size() + 1 >= kMaxParities) return false;
        if (rest) group.basis.push_back(rest);
        group.rotations.push_back(&op);
        group.used |= op.used, rotating |= op.used;
        return true;
    }
    if (op.used & rotating) return false;
    groups.push_back({{&op}, {}, op.used});
    rotating |= op.used;
    return true;
}

// Emits what may act before everything that is left: rotations and other operators, or (where `diagonals`) one phase.
template <class Real>
bool TileCompiler<Real>::emit_round(bool diagonals) {
    std::vector<Rotation> rotations;
    std::vector<const TileOp*> phase;
    std::vector<std::size_t> others, left;
    std::vector<PauliGroup> groups;
    index_t blocked = 0, blocked_mix = 0, rotating = 0;
    std::size_t k = first_;
    for (; k < remaining_.size() && left.size() < kLookAhead; ++k) {
        if ((blocked & tile_mask_) == tile_mask_ && (blocked & ~tile_mask_) == 0 && !diagonals) break;  // nothing can act
        const TileOp& op = ops_[remaining_[k]];
        const bool may_act = !(op.used & blocked) && !(op.mixed & blocked_mix);
        Rotation rotation;
        bool taken = false;
        if (may_act && is_diagonal(op.kind)) {
            if (diagonals) phase.push_back(&op), taken = true;
        } else if (may_act && !diagonals && op.kind == Kind::kPauli) {
            taken = join_group(groups, op, rotating);
        } else if (may_act && !diagonals && !(op.used & rotating)) {
            if (as_rotation(op, rotation)) rotations.push_back(rotation), rotating |= op.mixed, taken = true;
            else others.push_back(remaining_[k]), rotating |= op.used, taken = true;
        }
        if (taken) continue;
        left.push_back(remaining_[k]);
        blocked |= op.mixed;
        blocked_mix |= op.used;
    }
    const bool progress = left.size() < k - first_;
    first_ = k - left.size();  // what was left moves up to what was not looked at
    std::copy(left.begin(), left.end(), remaining_.begin() + first_);
    if (!phase.empty()) emit_diagonals(phase);
    emit_rotations(rotations);
    for (const PauliGroup& group : groups) emit_paulis(group);
    for (std::size_t number : others) emit_other(ops_[number]);
    return progress;
}

template <class Real>
TileProgram<Real> TileCompiler<Real>::finish() {
    while (first_ < remaining_.size()) {
        if (emit_round(false)) continue;
        if (!emit_round(true)) break;  // cannot happen: the first remaining operator may always act
    }
    restore_lanes();
    program_.scatter = offsets();
    program_.scale = scale_;
    for (int p = 0; p < program_.num_tile; ++p) program_.tile.push_back(static_cast<std::uint8_t>(qubit_[p]));
    return std::move(program_);
}

// Brings every target of `op` to a vertical position.
template <class Real>
void TileCompiler<Real>::free_lanes(const TileOp& op) {
    for (int q : op.targets)
        if (position_[q] < program_.lane_bits) swap_lane(position_[q], idle_vertical(op));
}

// The vertical position, not a target of `op`, whose qubit is a matrix or permutation target latest in what comes next.
template <class Real>
int TileCompiler<Real>::idle_vertical(const TileOp& op) const {
    index_t candidates = 0;
    for (int p = program_.lane_bits; p < program_.num_tile; ++p) candidates |= index_t{1} << qubit_[p];
    for (int q : op.targets) candidates &= ~(index_t{1} << q);
    index_t last = candidates;
    const std::size_t end = std::min(remaining_.size(), first_ + kLookAhead);
    for (std::size_t k = first_; k < end; ++k) {
        const TileOp& later = ops_[remaining_[k]];
        if (later.mixed == 0 || later.targets.size() < 2) continue;
        last &= ~later.mixed;
        if (!last) break;
        candidates = last;
    }
    for (int p = program_.lane_bits; p < program_.num_tile; ++p)
        if (candidates >> qubit_[p] & 1) return p;
    return program_.lane_bits;
}

template <class Real>
void TileCompiler<Real>::swap_lane(int lane, int vertical) {
    Sweep sweep{};
    sweep.type = SweepType::kSwapLane;
    sweep.num_targets = 1;
    sweep.targets[0] = static_cast<std::uint8_t>(vertical - program_.lane_bits);
    sweep.flip = static_cast<std::uint8_t>(lane);
    sweep.local = is_local(sweep);
    push(sweep);
    std::swap(qubit_[lane], qubit_[vertical]);
    position_[qubit_[lane]] = lane;
    position_[qubit_[vertical]] = vertical;
}

// The scatter writes half vectors of contiguous amplitudes: the lowest qubits must be back on the low lanes.
template <class Real>
void TileCompiler<Real>::restore_lanes() {
    for (int q = 0; q + 1 < program_.lane_bits; ++q) {
        if (position_[q] == q) continue;
        if (position_[q] < program_.lane_bits) swap_lane(position_[q], program_.num_tile - 1);
        swap_lane(q, position_[q]);
    }
}

template <class Real>
Controls TileCompiler<Real>::controls_of(const TileOp& op, bool any_position) const {
    Controls out;
    for (std::size_t j = 0; j < op.controls.size(); ++j) {
        const index_t value = op.ctrl_state >> j & 1;
        const int q = op.controls[j], p = position_[q];
        const int first = any_position ? 0 : program_.lane_bits;
        if (p < 0) {
            out.outer_mask |= index_t{1} << q;
            out.outer_value |= value << q;
        } else if (p >= first) {
            out.vertical_mask |= 1u << (p - first);
            out.vertical_value |= static_cast<std::uint32_t>(value) << (p - first);
        } else {
            out.lane_mask |= 1u << p;
            out.lane_value |= static_cast<std::uint32_t>(value) << p;
        }
    }
    return out;
}

template <class Real>
Sweep TileCompiler<Real>::sweep_on(SweepType type, const TileOp& op, bool any_position) const {
    Sweep sweep{};
    sweep.type = type;
    sweep.num_targets = static_cast<std::uint8_t>(op.targets.size());
    for (std::size_t j = 0; j < op.targets.size(); ++j)
        sweep.targets[j] = static_cast<std::uint8_t>(position_[op.targets[j]] - (any_position ? 0 : program_.lane_bits));
    sweep.controls = controls_of(op, any_position);
    sweep.local = !any_position && is_local(sweep);
    return sweep;
}

template <class Real>
bool TileCompiler<Real>::is_local(const Sweep& sweep) const {
    for (int j = 0; j < sweep.num_targets; ++j)
        if (sweep.targets[j] + program_.lane_bits >= program_.block_bits) return false;
    return true;
}

template <class Real>
void TileCompiler<Real>::push(Sweep sweep) {
    program_.sweeps.push_back(sweep);
}

template <class Real>
std::uint32_t TileCompiler<Real>::push_data(const std::vector<double>& values) {
    const auto begin = static_cast<std::uint32_t>(align_end(program_.data));
    for (double value : values) program_.data.push_back(static_cast<Real>(value));
    return begin;
}

// State offset of each half vector: bit j of its number is the qubit at position lane_bits - 1 + j.
template <class Real>
std::vector<index_t> TileCompiler<Real>::offsets() const {
    const int first = program_.lane_bits - 1, count = program_.num_tile - first;
    std::vector<index_t> out(index_t{1} << count);
    for (index_t h = 0; h < out.size(); ++h) out[h] = deposit(h, qubit_.data() + first, count);
    return out;
}

template class TileCompiler<double>;
template class TileCompiler<float>;

}  // namespace qsim
