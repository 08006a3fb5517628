// cpu/stack/stack.cpp -- groups the operators of a stack program into steps, runs them forwards and back.
#include "cpu/stack/stack.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/aligned.hpp"
#include "base/parallel.hpp"
#include "cpu/dispatch/kernel_table.hpp"

namespace qsim {

namespace {

constexpr index_t kTileChunks = 64;  // partial sums of one wide state: their number, and so their order, is fixed

// state -> tile: amplitudes `index[i] | base`; positions beyond the state's qubits hold zeros.
void gather(const std::complex<double>* state, const std::vector<index_t>& index, const StackTile& tile) {
    const index_t size = index_t{1} << tile.bits;
    for (index_t i = 0; i < index.size(); ++i) {
        const std::complex<double> amp = state[tile.base | index[i]];
        tile.re[i] = amp.real(), tile.im[i] = amp.imag();
    }
    std::fill(tile.re + index.size(), tile.re + size, 0.0);
    std::fill(tile.im + index.size(), tile.im + size, 0.0);
}

void scatter(const StackTile& tile, const std::vector<index_t>& index, std::complex<double>* state) {
    for (index_t i = 0; i < index.size(); ++i) state[tile.base | index[i]] = {tile.re[i], tile.im[i]};
}

void multiply_pair(const double* data, bool diagonal, std::complex<double>* product) {
    const std::complex<double> a{data[0], data[1]};
    if (diagonal) {
        const std::complex<double> d{data[2], data[3]};
        product[0] *= a, product[1] *= a, product[2] *= d, product[3] *= d;
        return;
    }
    const std::complex<double> b{data[2], data[3]}, c{data[4], data[5]}, d{data[6], data[7]};
    for (int column = 0; column < 2; ++column) {
        const std::complex<double> x = product[column], y = product[2 + column];
        product[column] = a * x + b * y;
        product[2 + column] = c * x + d * y;
    }
}

// Mask of the positions that an operator reads or changes.
std::uint32_t positions(const StackOp& op) {
    std::uint32_t mask = op.control_mask;
    for (int j = 0; j < op.num_inner; ++j) mask |= 1u << op.inner[j];
    return mask;
}

}  // namespace

StackProgram::StackProgram(int num_qubits, std::vector<int> tile) : num_qubits_(num_qubits), tile_(std::move(tile)) {
    bits_ = std::max(static_cast<int>(tile_.size()), kStackMinTile);
    if (bits_ > kStackTile) throw std::invalid_argument("a tile of a stack has at most " + std::to_string(kStackTile) + " qubits");
    for (int q = 0; q < num_qubits; ++q)
        if (std::find(tile_.begin(), tile_.end(), q) == tile_.end()) outer_.push_back(q);
    pending_.resize(bits_);
}

void StackProgram::add(const OpList& ops, const OpHead& head, bool slot) {
    const std::vector<int> targets(ops.targets(head), ops.targets(head) + head.num_targets);
    const complex_t* data = ops.data(head);
    if (targets.size() > kStackTargets) throw std::invalid_argument("an operator of a stack has too many targets");
    StackOp op;
    op.slot = slot;
    op.size = head.num_data;
    for (int j = 0; j < head.num_controls; ++j) {
        const int qubit = OpList::control_qubit(ops.controls(head)[j]);
        const index_t wanted = OpList::control_value(ops.controls(head)[j]);
        const auto at = std::find(tile_.begin(), tile_.end(), qubit);
        if (at == tile_.end()) {
            op.outer_mask |= index_t{1} << qubit, op.outer_value |= wanted << qubit;
        } else {
            const auto position = static_cast<std::uint32_t>(at - tile_.begin());
            op.control_mask |= 1u << position, op.control_value |= static_cast<std::uint32_t>(wanted) << position;
        }
    }
    if (head.kind == Kind::kParity || head.kind == Kind::kPauli)
        throw std::invalid_argument("a stack takes gates, and neither parities nor Pauli rotations, which are made by planning");
    op.type = head.kind == Kind::kDiagonal      ? StackType::kDiagonal
              : head.kind == Kind::kHadamard || targets.size() == 1 ? StackType::kPair
              : head.kind == Kind::kPermutation ? StackType::kPermute
                                                : StackType::kDense;
    if (slot) {
        if (head.kind != Kind::kUnitary && head.kind != Kind::kDiagonal)
            throw std::invalid_argument("only matrices and diagonals come with the rows");
        op.offset = static_cast<std::int64_t>(data[0].real());
        width_ = std::max(width_, static_cast<index_t>(op.offset + op.size));
        return append(op, targets);
    }
    std::vector<complex_t> entries(data, data + head.num_data);
    const std::uint32_t* permutation = ops.permutation(head);
    if (head.kind == Kind::kHadamard) {
        const double h = std::sqrt(0.5);
        entries = {h, h, h, -h};
    } else if (head.kind == Kind::kPermutation && targets.size() == 1) {
        entries.assign(4, 0.0);
        for (int j = 0; j < 2; ++j) entries[2 * permutation[j] + j] = data[j];
    } else if (head.kind == Kind::kPermutation) {
        op.index = static_cast<std::int64_t>(indices_.size());
        indices_.insert(indices_.end(), permutation, permutation + head.num_data);
    }
    op.size = static_cast<std::int64_t>(entries.size());
    op.offset = static_cast<std::int64_t>(data_.size() / 2);
    for (auto entry : entries) data_.push_back(entry.real()), data_.push_back(entry.imag());
    if (head.kind != Kind::kHadamard) return append(op, targets);
    for (int target : targets) append(op, {target});  // one 2x2 matrix per target
}

void StackProgram::append(StackOp op, const std::vector<int>& targets) {
    for (std::size_t j = 0; j < targets.size(); ++j) {
        const auto at = std::find(tile_.begin(), tile_.end(), targets[j]);
        if (at == tile_.end()) {
            if (op.type != StackType::kDiagonal) throw std::invalid_argument("an operator mixes a qubit outside the tile");
            op.outer[op.num_outer] = static_cast<std::uint8_t>(targets[j]);
            op.outer_bit[op.num_outer++] = static_cast<std::uint8_t>(j);
        } else {
            op.inner[op.num_inner] = static_cast<std::uint8_t>(at - tile_.begin());
            op.inner_bit[op.num_inner++] = static_cast<std::uint8_t>(j);
        }
    }
    ops_.push_back(op);
    const bool alone = op.num_inner == 1 && !op.num_outer && !op.control_mask && !op.outer_mask;
    if (alone) {
        pending_[op.inner[0]].push_back(op);
        return;
    }
    for (int position = 0; position < bits_; ++position)
        if (positions(op) >> position & 1) close(position);
    steps_.push_back({static_cast<int>(chained_.size()), static_cast<int>(chained_.size()) + 1, 0});
    chained_.push_back(op);
}

void StackProgram::close(int position) {
    auto& waiting = pending_[position];
    if (waiting.empty()) return;
    steps_.push_back({static_cast<int>(chained_.size()), static_cast<int>(chained_.size() + waiting.size()), 0});
    chained_.insert(chained_.end(), waiting.begin(), waiting.end());
    waiting.clear();
}

void StackProgram::finish() {
    for (int position = 0; position < bits_; ++position) close(position);
    // A step that comes first on its position comes first of all, lowest positions first: the state grows with them.
    std::uint32_t seen = 0;
    std::vector<Step> first, rest;
    for (const Step& step : steps_) {
        const std::uint32_t mask = positions(chained_[step.begin]);
        const bool alone = !(mask & (mask - 1)) && !chained_[step.begin].num_outer && !chained_[step.begin].outer_mask;
        (alone && !(mask & seen) ? first : rest).push_back(step);
        seen |= mask;
    }
    std::sort(first.begin(), first.end(), [this](const Step& a, const Step& b) {
        return positions(chained_[a.begin]) < positions(chained_[b.begin]);
    });
    first.insert(first.end(), rest.begin(), rest.end());
    steps_ = std::move(first);
    int bits = kStackMinTile;
    for (Step& step : steps_) {
        while (positions(chained_[step.begin]) >> bits) ++bits;
        step.bits = bits;
    }
}

void StackProgram::apply_step(const Step& step, const double* row, const StackTile& tile, double* scratch) const {
    const StackOp& first = chained_[step.begin];
    if (step.end == step.begin + 1) {
        tile_kernels().stack.apply(first, data_of(first, row), indices_.data() + first.index, false, tile, scratch);
        return;
    }
    std::complex<double> product[4] = {1, 0, 0, 1};
    bool diagonal = true;
    for (int k = step.begin; k < step.end; ++k) {
        const bool factors = chained_[k].type == StackType::kDiagonal;
        multiply_pair(data_of(chained_[k], row), factors, product);
        diagonal = diagonal && factors;
    }
    StackOp whole = first;
    whole.type = diagonal ? StackType::kDiagonal : StackType::kPair;
    if (diagonal) product[1] = product[3];
    tile_kernels().stack.apply(whole, reinterpret_cast<const double*>(product), nullptr, false, tile, scratch);
}

void StackProgram::prepare(const std::complex<double>* row, const StackTile& tile, double* scratch) const {
    std::fill_n(tile.re, tile_size(), 0.0);
    std::fill_n(tile.im, tile_size(), 0.0);
    tile.re[0] = 1;
    for (const Step& step : steps_)
        apply_step(step, reinterpret_cast<const double*>(row), {tile.re, tile.im, step.bits, tile.base}, scratch);
}

void StackProgram::run(const std::complex<double>* values, index_t width, index_t rows, std::complex<double>* states,
                       int threads) const {
    if (!whole() || width < width_) throw std::invalid_argument("a stack runs whole states with all their numbers");
    const index_t size = tile_size(), amplitudes = index_t{1} << num_qubits_;
    AlignedVector<double> room(6 * size * std::max(threads, 1));
    parallel_chunks(rows, threads, [&](index_t r, int thread) {
        double* own = room.data() + 6 * size * thread;
        const StackTile tile{own, own + size, bits_, 0};
        prepare(values + r * width, tile, own + 2 * size);
        std::complex<double>* out = states + r * amplitudes;
        for (index_t i = 0; i < amplitudes; ++i) out[i] = {tile.re[i], tile.im[i]};
    });
}

void StackProgram::overlaps(const std::complex<double>* values, index_t width, index_t rows, std::complex<double>* kets,
                            std::complex<double>* bras, std::complex<double>* out, int threads) const {
    if (width < width_) throw std::invalid_argument("a row has too few numbers");
    const index_t size = index_t{1} << bits_, amplitudes = index_t{1} << num_qubits_;
    const index_t tiles = index_t{1} << outer_.size(), chunks = std::min(tiles, kTileChunks), share = tiles / chunks;
    std::vector<index_t> index(std::min(size, amplitudes));
    for (index_t i = 0; i < index.size(); ++i) index[i] = deposit(i, tile_.data(), static_cast<int>(tile_.size()));
    AlignedVector<double> room(8 * size * std::max(threads, 1));
    std::vector<double> sums(chunks > 1 ? 2 * width * rows * chunks : 0);
    parallel_chunks(rows * chunks, threads, [&](index_t number, int thread) {
        const index_t r = number / chunks;
        double* own = room.data() + 8 * size * thread;
        double* sum = chunks > 1 ? sums.data() + 2 * width * number : reinterpret_cast<double*>(out + r * width);
        const double* row = reinterpret_cast<const double*>(values + r * width);
        for (index_t t = number % chunks * share; t < (number % chunks + 1) * share; ++t) {
            const index_t base = deposit(t, outer_.data(), static_cast<int>(outer_.size()));
            const StackTile ket{own, own + size, bits_, base}, bra{own + 2 * size, own + 3 * size, bits_, base};
            gather(kets + r * amplitudes, index, ket);
            gather(bras + r * amplitudes, index, bra);
            for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
                const double* data = data_of(*op, row);
                const std::int64_t* indices = indices_.data() + op->index;
                tile_kernels().stack.apply(*op, data, indices, true, ket, own + 4 * size);
                if (op->slot) tile_kernels().stack.overlap(*op, bra, ket, sum + 2 * op->offset, own + 4 * size);
                tile_kernels().stack.apply(*op, data, indices, true, bra, own + 4 * size);
            }
            scatter(ket, index, kets + r * amplitudes);
            scatter(bra, index, bras + r * amplitudes);
        }
    });
    for (index_t number = 0; number < rows * chunks && chunks > 1; ++number)
        for (index_t k = 0; k < width; ++k)
            out[number / chunks * width + k] += std::complex<double>(sums[2 * (number * width + k)], sums[2 * (number * width + k) + 1]);
}

}  // namespace qsim
