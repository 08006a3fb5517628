// ir/matrix_check.cpp -- a matrix read once for its structure, and once for its distance from a unitary one.
#include "ir/matrix_check.hpp"

#include <cmath>

// Compiled for several processors; the right one is chosen when the library is loaded.
#if defined(QSIM_X86) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define QSIM_CLONES __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#else
#define QSIM_CLONES
#endif

namespace qsim {

namespace {

constexpr int kProbes = 4;
constexpr std::size_t kExactSize = 8;

// y = U p and z = U^dagger y for kProbes real vectors p; p and z have kProbes numbers a row of U.
QSIM_CLONES void there_and_back(const double* __restrict u, std::size_t size, const double* __restrict p, double* __restrict z_real,
                                double* __restrict z_imaginary) {
    for (std::size_t row = 0; row < size; ++row) {
        const double* entries = u + 2 * row * size;
        double y_real[kProbes] = {}, y_imaginary[kProbes] = {};
        for (std::size_t column = 0; column < size; ++column)
            for (int j = 0; j < kProbes; ++j) {
                y_real[j] += entries[2 * column] * p[kProbes * column + j];
                y_imaginary[j] += entries[2 * column + 1] * p[kProbes * column + j];
            }
        for (std::size_t column = 0; column < size; ++column)
            for (int j = 0; j < kProbes; ++j) {
                const double re = entries[2 * column], im = entries[2 * column + 1];
                z_real[kProbes * column + j] += re * y_real[j] + im * y_imaginary[j];
                z_imaginary[kProbes * column + j] += re * y_imaginary[j] - im * y_real[j];
            }
    }
}

// A well mixed function of a counter (SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// Whether the matrix is a tensor power of the Hadamard matrix.
bool is_hadamard(const complex_t* matrix, std::size_t size) {
    const double entry = 1 / std::sqrt(static_cast<double>(size));
    for (std::size_t row = 0; row < size; ++row)
        for (std::size_t column = 0; column < size; ++column) {
            const double expected = __builtin_parityll(row & column) ? -entry : entry;
            if (!(std::norm(matrix[row * size + column] - expected) < kRounded * kRounded)) return false;
        }
    return true;
}

}  // namespace

Kind structure_of(const complex_t* matrix, std::size_t size, std::int64_t* place) {
    if (size > 1 && is_hadamard(matrix, size)) return Kind::kHadamard;
    std::fill_n(place, size, -1);
    bool diagonal = true;
    for (std::size_t row = 0; row < size; ++row)
        for (std::size_t column = 0; column < size; ++column) {
            if (std::norm(matrix[row * size + column]) <= kNegligible * kNegligible) continue;
            if (place[column] >= 0) return Kind::kUnitary;
            diagonal = diagonal && row == column;
            place[column] = static_cast<std::int64_t>(row);
        }
    std::vector<bool> hit(size, false);
    for (std::size_t column = 0; column < size; ++column) {
        if (place[column] < 0 || hit[place[column]]) return Kind::kUnitary;
        hit[place[column]] = true;
    }
    return diagonal ? Kind::kDiagonal : Kind::kPermutation;
}

double distance_from_unitary(const complex_t* u, std::size_t size) {
    double largest = 0;
    const auto see = [&](double distance) {
        if (!(distance <= largest)) largest = std::isfinite(distance) ? distance : HUGE_VAL;
    };
    if (size <= kExactSize) {
        for (std::size_t a = 0; a < size; ++a)
            for (std::size_t b = a; b < size; ++b) {
                complex_t sum = a == b ? -1 : 0;
                for (std::size_t row = 0; row < size; ++row) sum += times(std::conj(u[row * size + a]), u[row * size + b]);
                see(std::hypot(sum.real(), sum.imag()));
            }
        return largest;
    }
    std::vector<double> p(kProbes * size), z_real(kProbes * size), z_imaginary(kProbes * size);
    std::uint64_t state = size;  // fixed: what is refused today is refused tomorrow
    for (double& value : p) value = static_cast<double>(static_cast<std::int64_t>(mixed(state += 0x9e3779b97f4a7c15u))) * 0x1p-63;
    there_and_back(reinterpret_cast<const double*>(u), size, p.data(), z_real.data(), z_imaginary.data());
    for (std::size_t k = 0; k < p.size(); ++k) see(std::hypot(z_real[k] - p[k], z_imaginary[k]));
    return largest;
}

double append_unitary(OpList& ops, const complex_t* matrix, const std::vector<std::int32_t>& targets, std::uint16_t name) {
    const std::size_t size = std::size_t{1} << targets.size();
    const double distance = distance_from_unitary(matrix, size);
    if (!(distance <= kUnitaryRounding)) return distance;
    std::vector<std::int64_t> place(size);
    const Kind kind = structure_of(matrix, size, place.data());
    if (kind == Kind::kUnitary) {
        ops.append(kind, targets.data(), targets.size(), 0, matrix, size * size, nullptr, name);
        return distance;
    }
    std::vector<complex_t> entries;
    if (kind != Kind::kHadamard)
        for (std::size_t column = 0; column < size; ++column) entries.push_back(matrix[place[column] * size + column]);
    const std::vector<std::uint32_t> rows(place.begin(), place.end());
    ops.append(kind, targets.data(), targets.size(), 0, entries.data(), entries.size(), rows.data(), name);
    return distance;
}

}  // namespace qsim
