// cpu/tile/emit.cpp -- one sweep from each operator or group of rotations, with its coefficients as the kernels read them.
#include <algorithm>
#include <cmath>

#include "cpu/dispatch/kernel_table.hpp"
#include "cpu/tile/compile.hpp"

namespace qsim {

namespace {

constexpr std::uint8_t kImaginaryFlag = 0x80;
constexpr double kSmallestUnit = 0x1p-8;    // diagonals below this are not divided out: scales would grow fast
constexpr double kSmallestScale = 0x1p-40;  // deferred scales beyond this are applied: single precision has 2^127

}  // namespace

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
    sweep.data = static_cast<std::uint32_t>(align_end(program_.data));
    program_.data.resize(sweep.data + 2 * size * size);
    Real* to = program_.data.data() + sweep.data;
    for (index_t row = 0; row < size; row += rows)  // packed as the product reads it
        for (index_t column = 0; column < size; ++column)
            for (index_t r = row; r < row + rows; ++r) {
                *to++ = static_cast<Real>(op.data[r * size + column].real());
                *to++ = static_cast<Real>(op.data[r * size + column].imag());
            }
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

template class TileCompiler<double>;
template class TileCompiler<float>;

}  // namespace qsim
