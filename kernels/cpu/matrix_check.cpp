// matrix_check.cpp -- a matrix read once for its structure, and once for its distance from a unitary one.
#include "matrix_check.hpp"

#include <cmath>

// Compiled for several processors; the right one is chosen when the library is loaded.
#if defined(QSIM_X86) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define QSIM_CLONES __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#else
#define QSIM_CLONES
#endif

namespace qsim {

namespace {

// The largest squared entry of |U^dagger U - 1|, U = x + i y; `real` and `imaginary` have room for a row.
QSIM_CLONES double largest_square(const double* __restrict x, const double* __restrict y, std::size_t size, double* __restrict real,
                                  double* __restrict imaginary) {
    double largest = 0;
    for (std::size_t a = 0; a < size; ++a) {  // row a of the product, from column a on
        for (std::size_t b = a; b < size; ++b) real[b] = imaginary[b] = 0;
        real[a] = -1;
        for (std::size_t row = 0; row < size; ++row) {
            const double re = x[row * size + a], im = y[row * size + a];
            for (std::size_t b = a; b < size; ++b) {
                real[b] += re * x[row * size + b] + im * y[row * size + b];
                imaginary[b] += re * y[row * size + b] - im * x[row * size + b];
            }
        }
        for (std::size_t b = a; b < size; ++b) {
            const double square = real[b] * real[b] + imaginary[b] * imaginary[b];
            if (!(square <= largest)) largest = std::isfinite(square) ? square : HUGE_VAL;
        }
    }
    return largest;
}

}  // namespace

Kind structure_of(const complex_t* matrix, std::size_t size, double negligible, std::int64_t* place) {
    std::fill_n(place, size, -1);
    bool diagonal = true;
    for (std::size_t row = 0; row < size; ++row)
        for (std::size_t column = 0; column < size; ++column) {
            if (std::norm(matrix[row * size + column]) <= negligible * negligible) continue;
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
    std::vector<double> x(size * size), y(size * size), real(size), imaginary(size);
    for (std::size_t k = 0; k < size * size; ++k) x[k] = u[k].real(), y[k] = u[k].imag();
    return std::sqrt(largest_square(x.data(), y.data(), size, real.data(), imaginary.data()));
}

}  // namespace qsim
