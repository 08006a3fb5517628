// cpu/ozaki/ozaki.hpp -- emulated FP64: complex matrix times columns of a state by INT8 products modulo several m, and CRT.
// Scheme     scale a column to integers; residues of re + i im and re - i im (i: a root of -1 modulo m); one real INT8 product
//            for each of the two; residues of the sums; the integers by CRT; unscale. Constants come from moduli.py.
// Exactness  integers are exact as long as no result wraps, which the scheme's bits exclude; operands are rounded once each,
//            results once. Each column is checked before it is written, and redone in FP64 where the check fails.
// Source     arXiv:2504.08009 (Ozaki scheme II)
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "base/aligned.hpp"
#include "base/bits.hpp"

namespace qsim {

struct OzakiModulus {
    double modulus, inverse, root;
    double re_high, re_low, im_high, im_low;  // CRT weights over the product, of the sum and the difference of a pair
};

struct OzakiScheme {
    std::vector<OzakiModulus> moduli;
    int matrix_bits, column_bits;
    int matrix_exponent;                // rows of the matrix times 2^-exponent have norms of at most 1 (and the scheme's slack)
    double product_high, product_low;  // of the moduli, times 2^-(matrix_bits + column_bits)
};

constexpr int kOzakiRows = 16;  // of the matrix to a packed block: one vector register of sums

inline index_t padded(index_t count, index_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// Packs one plane of residues (row-major rows x size) as OzakiKernels::product reads it.
void ozaki_pack(const std::int8_t* plane, index_t rows, index_t size, std::uint8_t* packed);

// Which columns of a state a block acts on.
struct OzakiColumns {
    std::vector<int> targets;  // index bit b of the matrix is targets[b]
    std::vector<int> free;     // qubits that number the columns
    index_t fixed;             // bits of the others
};

struct OzakiOutcome {
    std::int64_t redone = 0;  // columns that failed their check
    double residual = 0;      // largest of the others' checks, over the column's norm
};

class OzakiBlock {
  public:
    // matrix: row-major, 2^k x 2^k; weights: of the check, one per row; check_row: weights^T matrix 2^-matrix_exponent.
    OzakiBlock(OzakiScheme scheme, const std::complex<double>* matrix, index_t size, const double* weights,
               const std::complex<double>* check_row, int threads);

    // In place. `tolerance`: largest residual of a check, over the column's scale, that rounding explains.
    template <class Real>
    OzakiOutcome run(std::complex<Real>* amps, const OzakiColumns& columns, double tolerance, int threads) const;

    AlignedVector<std::uint8_t>& residues() { return residues_; }

  private:
    struct Column;
    template <class Real>
    struct Panel;
    template <class Real>
    void load(Panel<Real>& panel, const std::complex<Real>* amps, const OzakiColumns& columns, index_t number, int c) const;
    template <class Real>
    void multiply(Panel<Real>& panel) const;
    template <class Real>
    void store(Panel<Real>& panel, std::complex<Real>* amps, int c, double tolerance) const;
    template <class Real>
    void redo(Panel<Real>& panel, std::complex<Real>* amps, int c) const;

    OzakiScheme scheme_;
    index_t size_;
    std::vector<std::complex<double>> matrix_, check_row_;
    std::vector<double> weights_;
    AlignedVector<std::uint8_t> residues_;  // two packed planes per modulus
};

}  // namespace qsim
