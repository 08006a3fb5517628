// cpu/ozaki/ozaki.cpp -- the emulated block: panels of columns from gather to scatter, the check, the native way back.
#include "cpu/ozaki/ozaki.hpp"

#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"
#include "cpu/dispatch/kernel_table.hpp"
#include "cpu/tuning.hpp"

namespace qsim {

namespace {

// One block of kOzakiRows rows, `rows` of them there: four entries of a row are one word.
void pack_rows(const std::int8_t* plane, index_t rows, index_t size, std::uint8_t* packed) {
    const index_t depth = padded(size, 4);
    if (rows < kOzakiRows || size < depth) std::fill_n(packed, kOzakiRows * depth, std::uint8_t{128});
    for (index_t row = 0; row < rows; ++row)
        for (index_t k = 0; k < size; k += 4) {
            std::uint8_t* word = packed + k * kOzakiRows + row * 4;
            for (index_t i = 0; i < std::min<index_t>(4, size - k); ++i) word[i] = static_cast<std::uint8_t>(plane[row * size + k + i] + 128);
        }
}

}  // namespace

void ozaki_pack(const std::int8_t* plane, index_t rows, index_t size, std::uint8_t* packed) {
    for (index_t row = 0; row < rows; row += kOzakiRows)
        pack_rows(plane + row * size, std::min<index_t>(kOzakiRows, rows - row), size, packed + row * padded(size, 4));
}

namespace {

constexpr int kRescueExponent = 600;
constexpr double kTiny = 0x1p-900, kRescue = 0x1p600;  // squares of columns below this norm squared are taken of scaled values
constexpr double kExponentSlack = 1 + 0x1p-11;         // half of moduli.NORM_SLACK: the rest is for the norm's own rounding

// value * 2^exponent in two steps, for exponents beyond a double's range; rounds at most once
struct Scale {
    double first, second;
    explicit Scale(int exponent) : first(std::ldexp(1.0, exponent / 2)), second(std::ldexp(1.0, exponent - exponent / 2)) {}
    double operator()(double value) const { return value * first * second; }
};

}  // namespace

struct OzakiBlock::Column {
    index_t base;  // basis state of its first amplitude
    int exponent;  // of its scale
    double norm;   // over the scale
    std::complex<double> expected;  // of the check, over the scale
    bool usable;  // finite
};

// Working memory of one panel.
template <class Real>
struct OzakiBlock::Panel {
    Panel(index_t size, int width)
        : width(width), rows(padded(size, kOzakiRows)), depth(padded(size, 4)), re(size * width), im(size * width),
          amps(size * width), planes(2 * depth * width), products(rows * width), residues(2 * rows * width),
          sums(4 * rows * width), y_re(rows * width), y_im(rows * width), columns(width) {}

    const int width;  // columns
    const index_t rows, depth;
    AlignedVector<double> re, im;  // scaled columns, then rounded to integers
    std::vector<std::complex<Real>> amps;
    AlignedVector<std::int8_t> planes;
    AlignedVector<std::int32_t> products;
    AlignedVector<std::int8_t> residues;
    AlignedVector<double> sums, y_re, y_im;
    std::vector<Column> columns;
    std::vector<index_t> offsets;  // of the rows in the state
    OzakiOutcome outcome;
};

OzakiBlock::OzakiBlock(OzakiScheme scheme, const std::complex<double>* matrix, index_t size, const double* weights,
                       const std::complex<double>* check_row, int threads)
    : scheme_(std::move(scheme)), size_(size), matrix_(matrix, matrix + size * size), check_row_(check_row, check_row + size),
      weights_(weights, weights + size) {
    const index_t depth = padded(size, 4), plane = padded(size, kOzakiRows) * depth;
    residues_.resize(2 * scheme_.moduli.size() * plane);
    const Scale scale(scheme_.matrix_bits - scheme_.matrix_exponent);
    parallel_chunks(padded(size, kOzakiRows) / kOzakiRows, threads, [&](index_t block, int) {
        const index_t first = block * kOzakiRows, rows = std::min<index_t>(kOzakiRows, size - first), count = rows * size;
        AlignedVector<double> re(count), im(count);
        for (index_t j = 0; j < count; ++j) {  // rounds once
            const std::complex<double> entry = matrix_[first * size + j];
            re[j] = std::nearbyint(scale(entry.real())), im[j] = std::nearbyint(scale(entry.imag()));
        }
        std::vector<std::int8_t> pair(2 * count);
        for (std::size_t t = 0; t < scheme_.moduli.size(); ++t) {
            ozaki_kernels().encode(scheme_.moduli[t], re.data(), im.data(), count, pair.data(), pair.data() + count);
            for (int side = 0; side < 2; ++side)
                pack_rows(pair.data() + side * count, rows, size, residues_.data() + (2 * t + side) * plane + first * depth);
        }
    });
}

// Gathers column `number` into place c of the panel: its norm, its scale, the scaled integers, what its check must give.
template <class Real>
void OzakiBlock::load(Panel<Real>& panel, const std::complex<Real>* amps, const OzakiColumns& columns, index_t number, int c) const {
    const index_t base = columns.fixed | deposit(number, columns.free.data(), static_cast<int>(columns.free.size()));
    Column& column = panel.columns[c];
    column = {base, 0, 0, 0, false};
    double square = 0, rescued = 0;
    for (index_t k = 0; k < size_; ++k) {
        const std::complex<Real> amp = panel.amps[c * size_ + k] = amps[base | panel.offsets[k]];
        const double re = amp.real(), im = amp.imag(), re_up = re * kRescue, im_up = im * kRescue;
        square += re * re + im * im;
        rescued += re_up * re_up + im_up * im_up;
    }
    const bool small = square < kTiny;
    const double norm = std::sqrt(small ? rescued : square);
    column.usable = std::isfinite(norm);
    if (column.usable && std::frexp(norm, &column.exponent) <= 0.5 * kExponentSlack) --column.exponent;
    column.norm = column.usable ? std::ldexp(norm, -column.exponent) : 0;
    if (small) column.exponent -= kRescueExponent;
    const Scale scale(scheme_.column_bits - column.exponent);
    double expected_re = 0, expected_im = 0;
    for (index_t k = 0; k < size_; ++k) {
        const index_t at = c * size_ + k;
        const double re = column.usable ? scale(panel.amps[at].real()) : 0, im = column.usable ? scale(panel.amps[at].imag()) : 0;
        const double p = check_row_[k].real(), q = check_row_[k].imag();
        expected_re += p * re - q * im;
        expected_im += p * im + q * re;
        panel.re[at] = std::nearbyint(re), panel.im[at] = std::nearbyint(im);  // rounds once
    }
    column.expected = std::complex<double>(expected_re, expected_im) * std::ldexp(1.0, -scheme_.column_bits);
}

// The scaled result of every column of the panel.
template <class Real>
void OzakiBlock::multiply(Panel<Real>& panel) const {
    const OzakiKernels& kernels = ozaki_kernels();
    const index_t plane = panel.rows * panel.depth, count = panel.rows * panel.width;
    std::int8_t *plus = panel.planes.data(), *minus = plus + panel.depth * panel.width;
    std::fill(panel.sums.begin(), panel.sums.end(), 0.0);
    for (std::size_t t = 0; t < scheme_.moduli.size(); ++t) {
        const OzakiModulus& modulus = scheme_.moduli[t];
        for (int c = 0; c < panel.width; ++c)
            kernels.encode(modulus, &panel.re[c * size_], &panel.im[c * size_], size_, plus + c * panel.depth, minus + c * panel.depth);
        for (int side = 0; side < 2; ++side) {
            const std::uint8_t* matrix = &residues_[(2 * t + side) * plane];
            kernels.product(matrix, panel.rows, panel.depth, side ? minus : plus, panel.width, panel.products.data());
            kernels.reduce(modulus, panel.products.data(), count, &panel.residues[side * count]);
        }
        kernels.accumulate(modulus, panel.residues.data(), &panel.residues[count], count, panel.sums.data());
    }
    kernels.finish(scheme_.product_high, scheme_.product_low, panel.sums.data(), count, panel.y_re.data(), panel.y_im.data());
}

// Writes column c back if its check holds, else its FP64 product.
template <class Real>
void OzakiBlock::store(Panel<Real>& panel, std::complex<Real>* amps, int c, double tolerance) const {
    const Column& column = panel.columns[c];
    const double *re = &panel.y_re[c * panel.rows], *im = &panel.y_im[c * panel.rows];
    if (column.usable && column.norm == 0) return;  // exact: zero stays zero
    double found_re = 0, found_im = 0;
    for (index_t k = 0; k < size_; ++k) found_re += weights_[k] * re[k], found_im += weights_[k] * im[k];
    const double residual = std::abs(std::complex<double>(found_re, found_im) - column.expected);
    if (!column.usable || !(residual <= tolerance)) {
        ++panel.outcome.redone;
        return redo(panel, amps, c);
    }
    panel.outcome.residual = std::max(panel.outcome.residual, residual / column.norm);
    const Scale scale(column.exponent + scheme_.matrix_exponent);
    for (index_t k = 0; k < size_; ++k)
        amps[column.base | panel.offsets[k]] = {static_cast<Real>(scale(re[k])), static_cast<Real>(scale(im[k]))};
}

template <class Real>
void OzakiBlock::redo(Panel<Real>& panel, std::complex<Real>* amps, int c) const {
    const std::complex<Real>* x = &panel.amps[c * size_];
    for (index_t row = 0; row < size_; ++row) {
        double re = 0, im = 0;
        for (index_t k = 0; k < size_; ++k) {
            const double p = matrix_[row * size_ + k].real(), q = matrix_[row * size_ + k].imag();
            re += p * x[k].real() - q * x[k].imag();
            im += p * x[k].imag() + q * x[k].real();
        }
        amps[panel.columns[c].base | panel.offsets[row]] = {static_cast<Real>(re), static_cast<Real>(im)};
    }
}

template <class Real>
OzakiOutcome OzakiBlock::run(std::complex<Real>* amps, const OzakiColumns& columns, double tolerance, int threads) const {
    const index_t num_columns = index_t{1} << columns.free.size();
    const int width = static_cast<int>(std::min<index_t>(num_columns, std::clamp<index_t>(kOzakiPanelAmps / size_, 8, 64)));
    std::vector<index_t> offsets(size_);
    for (index_t k = 0; k < size_; ++k) offsets[k] = deposit(k, columns.targets.data(), static_cast<int>(columns.targets.size()));
    std::vector<Panel<Real>> panels;
    for (int thread = 0; thread < std::max(threads, 1); ++thread) {
        panels.emplace_back(size_, width);
        panels.back().offsets = offsets;
    }
    parallel_chunks(num_columns / width, threads, [&](index_t number, int thread) {  // exact: both are powers of two
        Panel<Real>& panel = panels[thread];
        for (int c = 0; c < width; ++c) load(panel, amps, columns, number * width + c, c);
        multiply(panel);
        for (int c = 0; c < width; ++c) store(panel, amps, c, tolerance);
    });
    OzakiOutcome outcome;
    for (const auto& panel : panels) {
        outcome.redone += panel.outcome.redone;
        outcome.residual = std::max(outcome.residual, panel.outcome.residual);
    }
    return outcome;
}

template OzakiOutcome OzakiBlock::run(std::complex<double>*, const OzakiColumns&, double, int) const;
template OzakiOutcome OzakiBlock::run(std::complex<float>*, const OzakiColumns&, double, int) const;

}  // namespace qsim
