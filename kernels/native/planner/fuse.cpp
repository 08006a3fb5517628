// planner/fuse.cpp -- fusion. Compiled without contraction: sums that cancel must cancel, so that undone gates leave nothing.
//
// One-qubit gates are held back per qubit until an operator that does not commute with them arrives.
#include "planner/fuse.hpp"

#include <cmath>
#include <optional>

namespace qsim {

namespace {

constexpr double kRounding = 4 * 0x1p-53;  // parts of a matrix entry below this are rounding of exact zeros
const Matrix2 kIdentity{1, 0, 0, 1};

complex_t unit(complex_t z) { return z == 0.0 ? complex_t(1) : z / std::abs(z); }

// A phase without its rounding where it is a multiple of a quarter turn.
complex_t quarters(complex_t phase) {
    if (std::abs(phase.imag()) <= 2 * kRounding) return phase.real() < 0 ? -1 : 1;
    if (std::abs(phase.real()) <= 2 * kRounding) return complex_t(0, phase.imag() < 0 ? -1 : 1);
    return phase;
}

bool is_diagonal(const Matrix2& u) { return std::abs(u[1]) <= kRounding && std::abs(u[2]) <= kRounding; }

// `u` with its rounding removed where it already has a core's form.
std::optional<Matrix2> exact_core(const Matrix2& u) {
    const auto& [a, b, c, d] = u;
    if (std::abs(a.imag()) > kRounding || std::abs(d.imag()) > kRounding) return std::nullopt;
    if (std::abs(b.imag()) <= kRounding && std::abs(c.imag()) <= kRounding) {
        const double sign = a.real() * d.real() - b.real() * c.real() > 0 ? 1 : -1;
        const double p = (a.real() + sign * d.real()) / 2, q = (b.real() - sign * c.real()) / 2;
        return Matrix2{p, q, -sign * q, sign * p};
    }
    const double unequal = std::abs(a.real() - d.real()) + std::abs(b.imag() - c.imag());
    if (std::abs(b.real()) <= kRounding && std::abs(c.real()) <= kRounding && unequal <= 8 * kRounding) {
        const double p = (a.real() + d.real()) / 2, q = (b.imag() + c.imag()) / 2;
        return Matrix2{p, complex_t(0, q), complex_t(0, q), p};
    }
    return std::nullopt;
}

// data = data after or before `matrix` on bit `position` of its index.
void apply_left(complex_t* data, std::size_t size, int position, const Matrix2& m) {
    for (std::size_t row = 0; row < size; ++row) {
        if (row >> position & 1) continue;
        complex_t *low = data + row * size, *high = data + (row | std::size_t{1} << position) * size;
        for (std::size_t column = 0; column < size; ++column) {
            const complex_t x = low[column], y = high[column];
            low[column] = times(m[0], x) + times(m[1], y);
            high[column] = times(m[2], x) + times(m[3], y);
        }
    }
}

void apply_right(complex_t* data, std::size_t size, int position, const Matrix2& m) {
    for (std::size_t row = 0; row < size; ++row)
        for (std::size_t column = 0; column < size; ++column) {
            if (column >> position & 1) continue;
            complex_t &low = data[row * size + column], &high = data[row * size + (column | std::size_t{1} << position)];
            const complex_t x = low, y = high;
            low = times(x, m[0]) + times(y, m[2]);
            high = times(x, m[1]) + times(y, m[3]);
        }
}

// For each operator: whether the next one on its first target is a one-qubit gate that mixes it.
std::vector<bool> next_mixes_alone(const OpList& ops, int num_qubits) {
    std::vector<const OpHead*> following(num_qubits, nullptr);
    std::vector<bool> out(ops.size(), false);
    for (std::size_t k = ops.size(); k-- > 0;) {
        const OpHead& op = ops[k];
        const int count = op.num_targets + op.num_controls;
        if (op.num_targets == 1) {
            const OpHead* later = following[ops.targets(op)[0]];
            out[k] = later && later->num_targets + later->num_controls == 1 && !is_diagonal(later->kind);
        }
        if (count == 1 && is_diagonal(op.kind)) continue;  // a phase merges into whatever comes next
        for (int j = 0; j < count; ++j) following[OpList::control_qubit(ops.targets(op)[j])] = &op;
    }
    return out;
}

class Fusion {
  public:
    Fusion(const OpList& ops, int num_qubits, int max_fused_qubits)
        : ops_(ops), mixes_next_(next_mixes_alone(ops, num_qubits)), pending_(num_qubits), last_dense_(num_qubits, -1),
          max_fused_qubits_(max_fused_qubits), cz_(intern_name("cz")), phase_name_(intern_name("phase")),
          rotation_(intern_name("rotation")) {}

    OpList run() {
        out_.reserve(2 * ops_.size(), 2 * ops_.size(), 8 * ops_.size());
        for (std::size_t k = 0; k < ops_.size(); ++k) take(k);
        for (std::size_t q = 0; q < pending_.size(); ++q) flush(static_cast<int>(q), false);
        const complex_t phase = phase_ / std::abs(phase_);
        if (std::abs(phase - 1.0) > kRounding) out_.append(Kind::kDiagonal, nullptr, 0, 0, &phase, 1, nullptr, phase_name_);
        return std::move(out_);
    }

  private:
    void take(std::size_t k) {
        const OpHead& op = ops_[k];
        const std::int32_t* targets = ops_.targets(op);
        Matrix2 matrix;
        if (one_qubit_matrix(ops_, op, matrix)) {
            take_one_qubit(targets[0], matrix);
        } else if (op.kind == Kind::kHadamard && op.num_controls == 0) {
            for (int j = 0; j < op.num_targets; ++j) take_one_qubit(targets[j], hadamard());
        } else if (op.num_targets + op.num_controls == 0) {
            phase_ = times(phase_, ops_.data(op)[0]);
        } else if (is_cx(ops_, op) && mixes_next_[k] && mixes(targets[0])) {
            const std::int32_t control = ops_.controls(op)[0];
            const std::int32_t pair[2] = {targets[0], OpList::control_qubit(control)};
            const bool one = OpList::control_value(control);
            const complex_t diagonal[4] = {1, one ? 1 : -1, 1, one ? -1 : 1};
            take_one_qubit(targets[0], hadamard());
            for (int q : pair) flush(q, true);
            push(Kind::kDiagonal, pair, 2, diagonal, 4, cz_);
            take_one_qubit(targets[0], hadamard());
        } else if (op.kind == Kind::kUnitary && op.num_controls == 0 && op.num_targets <= max_fused_qubits_ && !OpList::is_shared(op)) {
            take_dense(op);
        } else {
            emit(op);
        }
    }

    void take_one_qubit(int q, const Matrix2& matrix) {
        auto& before = pending_[q];
        if (!before && last_dense_[q] >= 0) {
            const OpHead& dense = out_[last_dense_[q]];
            const int position = static_cast<int>(std::find(out_.targets(dense), out_.controls(dense), q) - out_.targets(dense));
            apply_left(out_.own_data(dense), std::size_t{1} << dense.num_targets, position, matrix);
        } else {
            before = before ? multiply(matrix, *before) : matrix;
        }
    }

    // A small matrix absorbs what is held back on its qubits, and joins the matrix before it on the same qubits.
    void take_dense(const OpHead& op) {
        const int k = op.num_targets;
        const std::size_t size = std::size_t{1} << k;
        const std::int32_t* targets = ops_.targets(op);
        std::vector<complex_t> data(ops_.data(op), ops_.data(op) + op.num_data);
        for (int j = 0; j < k; ++j)
            if (auto& before = pending_[targets[j]]) {
                apply_right(data.data(), size, j, *before);
                before.reset();
            }
        const std::int64_t number = last_dense_[targets[0]];
        bool joins = number >= 0 && out_[number].num_targets == k;
        for (int j = 0; j < k && joins; ++j) joins = last_dense_[targets[j]] == number;
        if (joins) return join(out_[number], data, targets);
        push(Kind::kUnitary, targets, k, data.data(), data.size(), op.name);
        for (int j = 0; j < k; ++j) last_dense_[targets[j]] = static_cast<std::int64_t>(out_.size()) - 1;
    }

    // The matrix `earlier` becomes `data`, given on the same qubits in the order `targets`, times itself.
    void join(const OpHead& earlier, const std::vector<complex_t>& data, const std::int32_t* targets) {
        const int k = earlier.num_targets;
        const std::size_t size = std::size_t{1} << k;
        int place[32];
        for (int j = 0; j < k; ++j)
            place[j] = static_cast<int>(std::find(targets, targets + k, out_.targets(earlier)[j]) - targets);
        complex_t* old = out_.own_data(earlier);
        std::vector<complex_t> product(size * size);
        for (std::size_t row = 0; row < size; ++row)
            for (std::size_t inner = 0; inner < size; ++inner) {
                const complex_t entry = data[deposit(row, place, k) * size + deposit(inner, place, k)];
                for (std::size_t column = 0; column < size; ++column)
                    product[row * size + column] += times(entry, old[inner * size + column]);
            }
        std::copy(product.begin(), product.end(), old);
    }

    // Appends `op` after what must come before it.
    void emit(const OpHead& op) {
        const index_t mixed = ops_.mixed(op);
        for (int j = 0; j < op.num_targets; ++j) flush(ops_.targets(op)[j], !(mixed >> ops_.targets(op)[j] & 1));
        for (int j = 0; j < op.num_controls; ++j) flush(OpList::control_qubit(ops_.controls(op)[j]), true);
        note(ops_.targets(op), op.num_targets + op.num_controls);
        out_.append(ops_, op);
    }

    // Emits what is held back on `q`; a phase may stay where the next operator is diagonal on the qubit.
    void flush(int q, bool keep_phase) {
        if (!pending_[q]) return;
        const Matrix2 matrix = *pending_[q];
        if (is_diagonal(matrix)) {
            if (keep_phase) return;
            pending_[q].reset();
            return emit_diagonal(q, matrix);
        }
        const Split parts = split(matrix);
        emit_diagonal(q, parts.right);
        push(Kind::kUnitary, &q, 1, parts.core.data(), 4, rotation_);
        pending_[q].reset();
        if (keep_phase) pending_[q] = parts.left;
        else emit_diagonal(q, parts.left);
    }

    void emit_diagonal(std::int32_t q, const Matrix2& matrix) {
        phase_ = times(phase_, matrix[0]);
        const complex_t ratio = matrix[3] == matrix[0] ? complex_t(1) : matrix[3] / matrix[0];
        const complex_t data[2] = {1, ratio};
        if (ratio != 1.0) push(Kind::kDiagonal, &q, 1, data, 2, phase_name_);
    }

    void push(Kind kind, const std::int32_t* targets, int count, const complex_t* data, std::size_t num_data, std::uint16_t name) {
        note(targets, count);
        out_.append(kind, targets, count, 0, data, num_data, nullptr, name);
    }

    void note(const std::int32_t* entries, int count) {
        for (int j = 0; j < count; ++j) last_dense_[OpList::control_qubit(entries[j])] = -1;
    }

    bool mixes(int q) const { return pending_[q] && !is_diagonal(*pending_[q]); }

    const OpList& ops_;
    std::vector<bool> mixes_next_;
    std::vector<std::optional<Matrix2>> pending_;
    std::vector<std::int64_t> last_dense_;  // number in out_ of a matrix that nothing has followed on the qubit
    OpList out_;
    complex_t phase_ = 1;
    int max_fused_qubits_;
    std::uint16_t cz_, phase_name_, rotation_;
};

}  // namespace

Split split(const Matrix2& u) {
    const auto& [a, b, c, d] = u;
    if (const auto core = exact_core(u)) return {kIdentity, *core, kIdentity};
    double cosine = std::abs(a), sine = std::abs(c);
    const double norm = std::hypot(cosine, sine);
    cosine /= norm, sine /= norm;
    if (cosine < kRounding) return {{-unit(b), 0, 0, unit(c)}, {0, -1, 1, 0}, kIdentity};
    const complex_t left0 = unit(a);
    complex_t left1 = unit(c);
    complex_t right1 = quarters(cosine >= sine ? unit(d / left1) : unit(-b / left0));
    if (right1.real() < 0 || (right1.real() == 0 && right1.imag() < 0)) left1 = -left1, right1 = -right1, sine = -sine;
    return {{left0, 0, 0, left1}, {cosine, -sine, sine, cosine}, {1, 0, 0, right1}};
}

Matrix2 axis_matrix(std::uint32_t letter, complex_t a, complex_t b) {
    const complex_t i_b = times(complex_t(0, 1), b);
    if (letter == kLetterX) return {a, b, b, a};
    return letter == kLetterY ? Matrix2{a, -i_b, i_b, a} : Matrix2{a + b, 0, 0, a - b};
}

Matrix2 multiply(const Matrix2& a, const Matrix2& b) {  // b acts first
    return {times(a[0], b[0]) + times(a[1], b[2]), times(a[0], b[1]) + times(a[1], b[3]),
            times(a[2], b[0]) + times(a[3], b[2]), times(a[2], b[1]) + times(a[3], b[3])};
}

const Matrix2& hadamard() {
    static const double r = std::sqrt(0.5);
    static const Matrix2 matrix{r, r, r, -r};
    return matrix;
}

bool one_qubit_matrix(const OpList& ops, const OpHead& op, Matrix2& matrix) {
    if (op.num_controls || op.num_targets != 1) return false;
    const complex_t* data = ops.data(op);
    if (op.kind == Kind::kHadamard) matrix = hadamard();
    else if (op.kind == Kind::kUnitary) matrix = {data[0], data[1], data[2], data[3]};
    else if (op.kind == Kind::kPauli) matrix = axis_matrix(ops.letters(op)[0], data[0], data[1]);
    else if (is_diagonal(op.kind) || ops.permutation(op)[0] == 0) matrix = {data[0], 0, 0, data[1]};
    else matrix = {0, data[1], data[0], 0};
    return true;
}

OpList fuse(const OpList& ops, int num_qubits, int max_fused_qubits) { return Fusion(ops, num_qubits, max_fused_qubits).run(); }

}  // namespace qsim
