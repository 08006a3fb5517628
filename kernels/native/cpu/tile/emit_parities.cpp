// cpu/tile/emit_parities.cpp -- sweeps whose factors depend on parities of qubits: diagonals, and rotations about Pauli strings.
#include <algorithm>
#include <cmath>

#include "cpu/tile/compile.hpp"

namespace qsim {

namespace {

bool odd(index_t bits) { return __builtin_popcountll(bits) & 1; }

}  // namespace

// Whether the low or the high table of a phase can hold the factors of a parity.
template <class Real>
bool TileCompiler<Real>::fits_tables(const TileOp& parity) const {
    int low = 0, high = 0;
    for (int q : parity.targets) {
        if (position_[q] < 0) return false;
        ++(position_[q] < program_.low_bits ? low : high);
    }
    return !low || !high;
}

// Parities that no table of a phase can hold have sweeps of their own.
template <class Real>
void TileCompiler<Real>::emit_diagonals(const std::vector<const TileOp*>& diagonals) {
    std::vector<TileOp> expanded;  // small parities with a factor for every index
    std::vector<const TileOp*> phase, parities;
    expanded.reserve(diagonals.size());
    for (const TileOp* op : diagonals) {
        if (op->kind != Kind::kParity) {
            phase.push_back(op);
        } else if (fits_tables(*op)) {
            std::vector<complex_t> table(std::size_t{1} << op->targets.size());
            for (std::size_t i = 0; i < table.size(); ++i) table[i] = op->data[__builtin_popcountll(i) & 1];
            expanded.push_back({Kind::kDiagonal, op->targets, {}, 0, table, {}, 0, op->used, 0});
            phase.push_back(&expanded.back());
        } else {
            parities.push_back(op);
        }
    }
    if (!phase.empty()) emit_phase(phase);
    emit_parities(parities);
}

template <class Real>
void TileCompiler<Real>::emit_parities(const std::vector<const TileOp*>& parities) {
    struct Factors {
        index_t used;
        complex_t even, odd;
    };
    std::vector<Factors> merged;  // one for each set of qubits
    for (const TileOp* op : parities) {
        auto at = std::find_if(merged.begin(), merged.end(), [&](const Factors& known) { return known.used == op->used; });
        if (at == merged.end()) at = merged.insert(at, {op->used, 1, 1});
        at->even = times(at->even, op->data[0]), at->odd = times(at->odd, op->data[1]);
    }
    const int W = 1 << program_.lane_bits;
    for (std::size_t begin = 0; begin < merged.size(); begin += kMaxParities) {
        const std::size_t count = std::min<std::size_t>(merged.size() - begin, kMaxParities);
        const Factors* group = merged.data() + begin;
        std::vector<index_t> masks, inside;
        for (std::size_t j = 0; j < count; ++j) masks.push_back(group[j].used), inside.push_back(positions(group[j].used));
        Sweep sweep = parity_sweep(SweepType::kParity, masks);
        std::vector<double> factors;
        for (std::uint32_t pattern = 0; pattern < 1u << count; ++pattern) {
            std::vector<complex_t> of_lane(W, 1.0);
            for (int lane = 0; lane < W; ++lane)
                for (std::size_t j = 0; j < count; ++j)
                    of_lane[lane] = times(of_lane[lane], (pattern >> j & 1) != odd(lane & inside[j]) ? group[j].odd : group[j].even);
            for (complex_t factor : of_lane) factors.push_back(factor.real());
            for (complex_t factor : of_lane) factors.push_back(factor.imag());
        }
        sweep.data = push_data(factors);
        sweep.local = true;
        push(sweep);
    }
}

// One sweep for rotations own + i other P; P takes i to a phase times i ^ direction: that of the first one, or its negative.
template <class Real>
void TileCompiler<Real>::emit_paulis(const PauliGroup& group) {
    struct Turn {
        double own, other;      // other times i
        std::uint32_t signs;    // which of the group's parities change the sign of p
        bool negative;
    };
    const TileOp& first = *group.rotations[0];
    const auto num_y = [](const TileOp& op) { return __builtin_popcountll(op.z & op.mixed); };
    std::vector<Turn> turns;
    for (const TileOp* op : group.rotations) {
        const complex_t a = op->data[0], b = op->data[1];
        const complex_t phase = std::abs(a) >= std::abs(b) ? a / std::abs(a) : complex_t(b.imag(), -b.real()) / std::abs(b);
        scale_ *= phase;
        const index_t relative = op->z ^ first.z;
        Turn turn{times(a, std::conj(phase)).real(), times(b, std::conj(phase)).imag(), 0, false};
        turn.negative = ((num_y(*op) - num_y(first)) / 2 & 1) != odd(relative & first.mixed);
        index_t rest = relative;
        for (std::size_t j = 0; j < group.basis.size(); ++j)
            if ((rest ^ group.basis[j]) < rest) rest ^= group.basis[j], turn.signs |= 1u << j;
        turns.push_back(turn);
    }
    std::vector<index_t> masks = group.basis;
    masks.push_back(first.z);
    std::vector<index_t> inside;
    for (const index_t mask : masks) inside.push_back(positions(mask));
    const std::uint32_t last = 1u << group.basis.size();  // the parity of the first one's own sign
    Sweep sweep = parity_sweep(SweepType::kPauli, masks);
    sweep.flags = num_y(first) % 2 == 0;
    const bool reversed = (num_y(first) % 4 == 1 || num_y(first) % 4 == 2) != odd(first.z & first.mixed);
    const int W = 1 << program_.lane_bits;
    std::vector<double> factors;
    for (std::uint32_t pattern = 0; pattern < 2 * last; ++pattern) {
        std::vector<double> own(W, 1), other(W, 0);
        for (int lane = 0; lane < W; ++lane) {
            std::uint32_t signs = pattern;
            for (std::size_t j = 0; j < masks.size(); ++j) signs ^= static_cast<std::uint32_t>(odd(lane & inside[j])) << j;
            double &x = own[lane], &y = other[lane];
            for (const Turn& turn : turns) {
                const double s = odd(signs & turn.signs) != turn.negative ? -turn.other : turn.other, before = x;
                x = turn.own * x - s * y;
                y = turn.own * y + s * before;
            }
            if (((signs & last) != 0) != reversed) y = -y;
        }
        factors.insert(factors.end(), own.begin(), own.end());
        factors.insert(factors.end(), other.begin(), other.end());
    }
    sweep.data = push_data(factors);
    const index_t direction = positions(first.mixed);
    program_.terms[sweep.phase].outer_value = direction;
    sweep.local = direction >> program_.block_bits == 0;
    push(sweep);
}

// A sweep whose factors depend on the parities of the qubits of each mask: the terms and the patterns of the tile's vectors.
template <class Real>
Sweep TileCompiler<Real>::parity_sweep(SweepType type, const std::vector<index_t>& masks) {
    Sweep sweep{};
    sweep.type = type;
    sweep.num_targets = static_cast<std::uint8_t>(masks.size());
    sweep.phase = static_cast<std::uint32_t>(program_.terms.size());
    std::vector<index_t> inside;
    for (const index_t mask : masks) {
        PhaseTerm term{};
        term.outer_mask = mask & ~tile_mask_;
        term.inner_index = static_cast<std::uint32_t>(program_.indices.size());
        program_.terms.push_back(term);
        inside.push_back(positions(mask));
    }
    for (index_t i = 0; i < index_t{1} << program_.num_tile; i += index_t{1} << program_.lane_bits) {
        std::uint32_t pattern = 0;
        for (std::size_t j = 0; j < masks.size(); ++j) pattern |= static_cast<std::uint32_t>(odd(i & inside[j])) << j;
        program_.indices.push_back(pattern);
    }
    return sweep;
}

// The positions in the tile of the qubits of a mask.
template <class Real>
index_t TileCompiler<Real>::positions(index_t qubits) const {
    index_t out = 0;
    for (int p = 0; p < program_.num_tile; ++p) out |= (qubits >> qubit_[p] & 1) << p;
    return out;
}

template bool TileCompiler<double>::fits_tables(const TileOp&) const;
template void TileCompiler<double>::emit_diagonals(const std::vector<const TileOp*>&);
template void TileCompiler<double>::emit_paulis(const PauliGroup&);
template bool TileCompiler<float>::fits_tables(const TileOp&) const;
template void TileCompiler<float>::emit_diagonals(const std::vector<const TileOp*>&);
template void TileCompiler<float>::emit_paulis(const PauliGroup&);

}  // namespace qsim
