// tile_compile.cpp -- schedules the operators of a tile pass into sweeps.
//
// Rotations that may act now go first, several to a sweep; then matrices and permutations; diagonals wait until nothing
// else can act, so that one phase sweep takes as many of them as commute to the same place.
#include "tile_compile.hpp"

#include <algorithm>
#include <cmath>

namespace qsim {

namespace {

constexpr std::uint8_t kImaginaryFlag = 0x80;
constexpr double kSmallestUnit = 0x1p-8;    // diagonals below this are not divided out: scales would grow fast
constexpr double kSmallestScale = 0x1p-40;  // deferred scales beyond this are applied: single precision has 2^127

bool is_trivial(const std::vector<complex_t>& phases) {
    return std::all_of(phases.begin(), phases.end(), [](complex_t z) { return z == 1.0; });
}

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
            TileOp one{Kind::kUnitary, {target}, op.controls, op.ctrl_state, {r, r, r, -r}, {}, 0, 0};
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
    if (op.kind != Kind::kDiagonal) op.mixed = op.used;
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

// Emits what may act before everything that is left: rotations and other operators, or (where `diagonals`) one phase.
template <class Real>
bool TileCompiler<Real>::emit_round(bool diagonals) {
    std::vector<Rotation> rotations;
    std::vector<const TileOp*> phase;
    std::vector<std::size_t> others, left;
    index_t blocked = 0, blocked_mix = 0, rotating = 0;
    std::size_t k = 0;
    for (; k < remaining_.size(); ++k) {
        if ((blocked & tile_mask_) == tile_mask_ && (blocked & ~tile_mask_) == 0 && !diagonals) break;  // nothing can act
        const TileOp& op = ops_[remaining_[k]];
        const bool may_act = !(op.used & blocked) && !(op.mixed & blocked_mix);
        Rotation rotation;
        bool taken = false;
        if (may_act && op.kind == Kind::kDiagonal) {
            if (diagonals) phase.push_back(&op), taken = true;
        } else if (may_act && !diagonals && !(op.used & rotating)) {
            if (as_rotation(op, rotation)) rotations.push_back(rotation), rotating |= op.mixed, taken = true;
            else others.push_back(remaining_[k]), rotating |= op.used, taken = true;
        }
        if (taken) continue;
        left.push_back(remaining_[k]);
        blocked |= op.mixed;
        blocked_mix |= op.used;
    }
    left.insert(left.end(), remaining_.begin() + k, remaining_.end());
    const bool progress = left.size() < remaining_.size();
    remaining_ = std::move(left);
    if (!phase.empty()) emit_phase(phase);
    emit_rotations(rotations);
    for (std::size_t number : others) emit_other(ops_[number]);
    return progress;
}

template <class Real>
TileProgram<Real> TileCompiler<Real>::finish() {
    while (!remaining_.empty()) {
        if (emit_round(false)) continue;
        if (!emit_round(true)) break;  // cannot happen: the first remaining operator may always act
    }
    restore_lanes();
    program_.scatter = offsets();
    program_.scale = scale_;
    for (int p = 0; p < program_.num_tile; ++p) program_.tile.push_back(static_cast<std::uint8_t>(qubit_[p]));
    return std::move(program_);
}

template <class Real>
void TileCompiler<Real>::emit_rotations(std::vector<Rotation>& rotations) {
    if (rotations.empty()) return;
    for (bool imaginary : {false, true}) emit_lanes(rotations, imaginary);
    std::vector<Rotation> vertical;
    for (const auto& rotation : rotations)
        if (rotation.position >= program_.lane_bits) vertical.push_back(rotation);
    std::sort(vertical.begin(), vertical.end(), [](const Rotation& a, const Rotation& b) {
        return a.imaginary != b.imaginary ? a.imaginary < b.imaginary : a.position < b.position;
    });
    const int block = program_.block_bits;
    const std::size_t max_rotations = tile_kernels().max_rotations;
    for (std::size_t begin = 0, end; begin < vertical.size(); begin = end) {
        for (end = begin + 1; end < vertical.size() && end < begin + max_rotations; ++end)
            if (vertical[end].imaginary != vertical[begin].imaginary ||
                (vertical[end].position < block) != (vertical[begin].position < block))
                break;
        emit_vertical(vertical, begin, end);
    }
    if (std::abs(scale_) < kSmallestScale) emit_phase({});
}

template <class Real>
void TileCompiler<Real>::emit_vertical(const std::vector<Rotation>& rotations, std::size_t begin, std::size_t end) {
    Sweep sweep{};
    sweep.type = SweepType::kRotation;
    if (rotations[begin].imaginary) sweep.flags |= kImaginaryFlag;
    std::vector<double> data;
    for (std::size_t k = begin; k < end; ++k) {
        const Rotation& r = rotations[k];
        const int j = sweep.num_targets++;
        sweep.targets[j] = static_cast<std::uint8_t>(r.position - program_.lane_bits);
        // the larger entry of the first row is divided out; where that is the second, the pair is read in reverse
        const bool reversed = std::abs(r.own0) < std::abs(r.other0);
        const bool reflection = r.own0 != 0 ? r.own1 != r.own0 : r.other1 == r.other0;
        if (reversed) sweep.flip |= 1 << j;
        if (r.imaginary) {
            scale_ *= reversed ? complex_t(0, r.other0) : complex_t(r.own0);
            data.push_back(reversed ? -r.own0 / r.other0 : r.other0 / r.own0);
        } else {
            scale_ *= reversed ? r.other0 : r.own0;
            data.push_back(reversed ? r.own0 / r.other0 : r.other0 / r.own0);
            if (reflection != reversed) sweep.flags |= 1 << j;
        }
    }
    sweep.data = push_data(data);
    sweep.local = is_local(sweep);
    push(sweep);
}

template <class Real>
void TileCompiler<Real>::emit_lanes(const std::vector<Rotation>& rotations, bool imaginary) {
    const int W = 1 << program_.lane_bits;
    std::vector<const Rotation*> by_lane(program_.lane_bits, nullptr);
    Sweep sweep{};
    sweep.type = SweepType::kLaneReal;
    for (const auto& rotation : rotations)
        if (rotation.position < program_.lane_bits && rotation.imaginary == imaginary) {
            by_lane[rotation.position] = &rotation;
            sweep.flags |= 1 << rotation.position;
        }
    if (!sweep.flags) return;
    sweep.flip = std::all_of(by_lane.begin(), by_lane.end(), [](const Rotation* r) {
        return !r || (r->own0 == r->own1 && std::abs(r->own0) > kSmallestUnit);
    });
    std::vector<double> data;
    for (int p = 0; p < program_.lane_bits; ++p) {
        const Rotation* r = by_lane[p];
        if (!r) continue;
        const double scale = sweep.flip ? r->own0 : 1;
        scale_ *= scale;
        for (int lane = 0; lane < W; ++lane) data.push_back((bit(lane, p) ? r->own1 : r->own0) / scale);
        for (int lane = 0; lane < W; ++lane) data.push_back((bit(lane, p) ? r->other1 : r->other0) / scale);
    }
    if (imaginary) sweep.flags |= kImaginaryFlag;
    sweep.data = push_data(data);
    sweep.local = true;
    push(sweep);
}

template <class Real>
void TileCompiler<Real>::emit_phase(const std::vector<const TileOp*>& diagonals) {
    Sweep sweep{};
    sweep.type = SweepType::kPhase;
    sweep.phase = static_cast<std::uint32_t>(program_.phases.size());
    program_.phases.push_back(compile_phase(program_, position_, diagonals, scale_));
    scale_ = 1;
    sweep.local = program_.phases.back().slow_begin == program_.phases.back().slow_end;
    push(sweep);
}

template <class Real>
void TileCompiler<Real>::emit_other(const TileOp& op) {
    const int free_positions = program_.num_tile - program_.lane_bits, k = static_cast<int>(op.targets.size());
    if (is_swap(op) && free_positions > 0) {  // the positions change names; the scatter does the rest
        std::swap(position_[op.targets[0]], position_[op.targets[1]]);
        qubit_[position_[op.targets[0]]] = op.targets[0];
        qubit_[position_[op.targets[1]]] = op.targets[1];
        return;
    }
    if (k == 1 && position_[op.targets[0]] < program_.lane_bits) return emit_lane_dense(op);
    if (op.kind == Kind::kPermutation) {
        if (k > std::min(free_positions, 6)) return emit_gather(op);
        free_lanes(op);
        Sweep sweep = sweep_on(SweepType::kPermute, op, false);
        sweep.flip = is_trivial(op.data);
        sweep.phase = static_cast<std::uint32_t>(program_.indices.size());
        program_.indices.insert(program_.indices.end(), op.permutation.begin(), op.permutation.end());
        std::vector<double> data;
        for (auto z : op.data) data.push_back(z.real()), data.push_back(z.imag());
        sweep.data = push_data(data);
        program_.max_dense = std::max(program_.max_dense, k);
        return push(sweep);
    }
    program_.max_dense = std::max(program_.max_dense, k);
    if (k > free_positions) return emit_dense_any(op);
    free_lanes(op);
    Sweep sweep = sweep_on(SweepType::kDense, op, false);
    const index_t size = index_t{1} << k, rows = k == 1 ? 2 : 4;
    sweep.flags = std::all_of(op.data.begin(), op.data.end(), [](complex_t z) { return z.imag() == 0; });
    std::vector<double> data;
    data.reserve(2 * size * size);
    for (index_t row = 0; row < size; row += rows)  // packed as the product reads it
        for (index_t column = 0; column < size; ++column)
            for (index_t r = row; r < row + rows; ++r) {
                data.push_back(op.data[r * size + column].real());
                data.push_back(op.data[r * size + column].imag());
            }
    sweep.data = push_data(data);
    push(sweep);
}

template <class Real>
complex_t TileCompiler<Real>::matrix_entry(const TileOp& op, index_t row, index_t column) const {
    if (op.kind == Kind::kPermutation) return op.permutation[column] == row ? op.data[column] : 0.0;
    return op.data[(row << op.targets.size()) + column];
}

// One target on a lane: per-lane coefficients, the identity in lanes whose controls are not met.
template <class Real>
void TileCompiler<Real>::emit_lane_dense(const TileOp& op) {
    const int W = 1 << program_.lane_bits, p = position_[op.targets[0]];
    Sweep sweep = sweep_on(SweepType::kLaneDense, op, false);
    std::vector<double> data(4 * W);
    for (int lane = 0; lane < W; ++lane) {
        const bool active = (lane & sweep.controls.lane_mask) == sweep.controls.lane_value;
        const int row = bit(lane, p);
        const complex_t own = active ? matrix_entry(op, row, row) : 1.0, other = active ? matrix_entry(op, row, 1 - row) : 0.0;
        data[lane] = own.real(), data[W + lane] = own.imag();
        data[2 * W + lane] = other.real(), data[3 * W + lane] = other.imag();
    }
    sweep.targets[0] = static_cast<std::uint8_t>(p);
    sweep.data = push_data(data);
    sweep.local = true;
    push(sweep);
}

template <class Real>
void TileCompiler<Real>::emit_dense_any(const TileOp& op) {
    Sweep sweep = sweep_on(SweepType::kDenseAny, op, true);
    const index_t size = index_t{1} << op.targets.size();
    std::vector<double> data;
    for (index_t row = 0; row < size; ++row) {
        for (index_t column = 0; column < size; ++column) data.push_back(op.data[row * size + column].real());
        for (index_t column = 0; column < size; ++column) data.push_back(op.data[row * size + column].imag());
    }
    sweep.data = push_data(data);
    push(sweep);
}

template <class Real>
void TileCompiler<Real>::emit_gather(const TileOp& op) {
    Sweep sweep = sweep_on(SweepType::kGather, op, true);
    const Controls inside = sweep.controls;
    sweep.controls.vertical_mask = sweep.controls.vertical_value = 0;
    const index_t size = index_t{1} << program_.num_tile;
    std::vector<std::uint32_t> source(size);
    std::vector<double> factors(2 * size);
    const int k = static_cast<int>(op.targets.size());
    const index_t target_bits = deposit((index_t{1} << k) - 1, sweep.targets, k);
    for (index_t i = 0; i < size; ++i) {
        index_t to = i;
        complex_t factor = 1;
        if ((i & inside.vertical_mask) == inside.vertical_value) {
            const index_t member = extract(i, sweep.targets, k);
            to = (i & ~target_bits) | deposit(op.permutation[member], sweep.targets, k);
            factor = op.data[member];
        }
        source[to] = static_cast<std::uint32_t>(i);
        factors[2 * to] = factor.real(), factors[2 * to + 1] = factor.imag();
    }
    sweep.flip = is_trivial(op.data);
    if (sweep.flip) factors.clear();
    sweep.phase = static_cast<std::uint32_t>(program_.indices.size());
    program_.indices.insert(program_.indices.end(), source.begin(), source.end());
    sweep.data = push_data(factors);
    sweep.local = false;
    program_.max_dense = std::max(program_.max_dense, program_.num_tile - program_.lane_bits);
    push(sweep);
}

// Brings every target of `op` to a vertical position.
template <class Real>
void TileCompiler<Real>::free_lanes(const TileOp& op) {
    for (int q : op.targets)
        if (position_[q] < program_.lane_bits) swap_lane(position_[q], idle_vertical(op));
}

// The vertical position, not a target of `op`, whose qubit is a matrix or permutation target latest in what remains.
template <class Real>
int TileCompiler<Real>::idle_vertical(const TileOp& op) const {
    index_t candidates = 0;
    for (int p = program_.lane_bits; p < program_.num_tile; ++p) candidates |= index_t{1} << qubit_[p];
    for (int q : op.targets) candidates &= ~(index_t{1} << q);
    index_t last = candidates;
    for (std::size_t number : remaining_) {
        const TileOp& later = ops_[number];
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
