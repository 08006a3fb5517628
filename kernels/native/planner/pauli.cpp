// planner/pauli.cpp -- one-qubit Clifford gates by their action on X and Z, exact but for the rounding of their matrices.
#include "planner/pauli.hpp"

#include <cmath>

namespace qsim {

namespace {

constexpr double kRounding = 4 * 0x1p-53;  // parts of an entry below this are rounding of exact zeros

const complex_t kI(0, 1);
const Matrix2 kLetters[3] = {{0, 1, 1, 0}, {0, -kI, kI, 0}, {1, 0, 0, -1}};

Matrix2 adjoint(const Matrix2& u) { return {std::conj(u[0]), std::conj(u[2]), std::conj(u[1]), std::conj(u[3])}; }

// The letter and the sign of a matrix that is a Pauli to rounding.
std::optional<std::pair<std::uint32_t, bool>> pauli_of(const Matrix2& m) {
    for (std::uint32_t letter = 0; letter < 3; ++letter)
        for (const double sign : {1.0, -1.0}) {
            bool equal = true;
            for (int k = 0; k < 4 && equal; ++k) equal = std::abs(m[k] - sign * kLetters[letter][k]) <= 2 * kRounding;
            if (equal) return std::pair(letter + 1, sign < 0);
        }
    return std::nullopt;
}

// A Clifford matrix without its rounding: its entries are 0, or one phase times a quarter turn and a size.
Matrix2 without_rounding(const Matrix2& u) {
    const bool spread = std::abs(u[0]) > 0.25 && std::abs(u[1]) > 0.25;
    const double size = spread ? hadamard()[0].real() : 1;
    const complex_t entry = std::abs(u[0]) > 0.25 ? u[0] : u[1], phase = entry / std::abs(entry);
    Matrix2 out;
    for (int k = 0; k < 4; ++k) {
        const complex_t turn = times(u[k], std::conj(phase));
        out[k] = times(phase, complex_t(std::round(turn.real()), std::round(turn.imag()))) * size;
    }
    return out;
}

}  // namespace

std::optional<Clifford> clifford(const Matrix2& u) {
    Clifford out{without_rounding(u), {}, {}};
    for (int k = 0; k < 2; ++k) {
        const auto image = pauli_of(multiply(multiply(u, kLetters[2 * k]), adjoint(u)));
        if (!image) return std::nullopt;
        out.letter[k] = image->first, out.negative[k] = image->second;
    }
    return out;
}

std::optional<AxisSum> axis_sum(const Matrix2& u) {
    const auto& [p, q, r, s] = u;
    const auto zero = [](complex_t z) { return std::abs(z) <= kRounding; };
    if (zero(q) && zero(r)) return AxisSum{kLetterZ, (p + s) / 2.0, (p - s) / 2.0};
    if (!zero(p - s)) return std::nullopt;
    if (zero(q - r)) return AxisSum{kLetterX, (p + s) / 2.0, (q + r) / 2.0};
    if (zero(q + r)) return AxisSum{kLetterY, (p + s) / 2.0, times(kI, (q - r) / 2.0)};
    return std::nullopt;
}

void conjugate(PauliSum& sum, const Clifford& c, int qubit) {
    const index_t here = index_t{1} << qubit;
    const bool x = sum.x & here, z = sum.z & here;
    if (!x && !z) return;
    std::uint32_t letter = 0;
    bool negative = false;
    if (x != z) {
        letter = c.letter[z], negative = c.negative[z];
    } else {  // Y = i X Z, so its image is i times the product of the others' images
        letter = 6 - c.letter[0] - c.letter[1];
        const bool cyclic = (c.letter[1] + 3 - c.letter[0]) % 3 == 1;  // XY = iZ, YZ = iX, ZX = iY; else -i
        negative = c.negative[0] ^ c.negative[1] ^ cyclic;
    }
    sum.x = (sum.x & ~here) | (letter != kLetterZ ? here : 0);
    sum.z = (sum.z & ~here) | (letter != kLetterX ? here : 0);
    if (negative) sum.b = -sum.b;
}

void conjugate_cx(PauliSum& sum, index_t control, index_t target) {
    const bool xc = sum.x & control, zc = sum.z & control, xt = sum.x & target, zt = sum.z & target;
    if (xc && zt && xt == zc) sum.b = -sum.b;
    if (xc) sum.x ^= target;
    if (zt) sum.z ^= control;
}

}  // namespace qsim
