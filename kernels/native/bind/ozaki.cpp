// bind/ozaki.cpp -- OzakiScheme, whose layers tests call one by one, and OzakiBlock. The GIL is released while they work.
#include "bind/bind.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "cpu/dispatch/kernel_table.hpp"
#include "cpu/ozaki/ozaki.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace qsim {

namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Amps = nb::ndarray<std::complex<T>, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kNumbersPerModulus = 7;  // of OzakiModulus

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<2>> make_matrix(std::size_t rows, std::size_t columns, T*& data) {
    data = new T[rows * columns]();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<2>>(data, {rows, columns}, owner);
}

OzakiScheme make_scheme(Matrix<double> moduli, std::vector<int> exponents, std::vector<double> product) {
    if (moduli.shape(1) != kNumbersPerModulus || exponents.size() != 3 || product.size() != 2)
        throw std::invalid_argument("a scheme is 7 numbers per modulus, 3 exponents and 2 words of a product");
    OzakiScheme scheme{{}, exponents[0], exponents[1], exponents[2], product[0], product[1]};
    for (std::size_t t = 0; t < moduli.shape(0); ++t) {
        const double* m = moduli.data() + kNumbersPerModulus * t;
        scheme.moduli.push_back({m[0], m[1], m[2], m[3], m[4], m[5], m[6]});
    }
    return scheme;
}

nb::object encode(const OzakiScheme& scheme, In<double> re, In<double> im) {
    std::int8_t* out;
    const std::size_t count = re.size();
    if (im.size() != count) throw std::invalid_argument("real and imaginary parts differ in number");
    auto array = make_matrix(2 * scheme.moduli.size(), count, out);
    for (std::size_t t = 0; t < scheme.moduli.size(); ++t)
        ozaki_kernels().encode(scheme.moduli[t], re.data(), im.data(), count, out + 2 * t * count, out + (2 * t + 1) * count);
    return nb::cast(array);
}

nb::object product(Matrix<std::int8_t> matrix, Matrix<std::int8_t> columns) {
    const std::size_t rows = matrix.shape(0), size = matrix.shape(1), count = columns.shape(0);
    if (columns.shape(1) != size) throw std::invalid_argument("rows and columns differ in length");
    const std::size_t all_rows = padded(rows, kOzakiRows), depth = padded(size, 4);
    AlignedVector<std::uint8_t> packed(all_rows * depth);
    AlignedVector<std::int8_t> padded_columns(count * depth);
    ozaki_pack(matrix.data(), rows, size, packed.data());
    for (std::size_t c = 0; c < count; ++c) std::copy_n(columns.data() + c * size, size, &padded_columns[c * depth]);
    AlignedVector<std::int32_t> sums(count * all_rows);
    ozaki_kernels().product(packed.data(), all_rows, depth, padded_columns.data(), static_cast<int>(count), sums.data());
    std::int32_t* out;
    auto array = make_matrix(count, rows, out);
    for (std::size_t c = 0; c < count; ++c) std::copy_n(&sums[c * all_rows], rows, out + c * rows);
    return nb::cast(array);
}

nb::object reduce(const OzakiScheme& scheme, std::size_t modulus, In<std::int32_t> sums) {
    std::int8_t* out;
    auto array = make_matrix(1, sums.size(), out);
    ozaki_kernels().reduce(scheme.moduli.at(modulus), sums.data(), sums.size(), out);
    return nb::cast(array);
}

nb::object reconstruct(const OzakiScheme& scheme, Matrix<std::int8_t> residues) {
    const std::size_t count = residues.shape(1);
    if (residues.shape(0) != 2 * scheme.moduli.size()) throw std::invalid_argument("two planes of residues per modulus are needed");
    AlignedVector<double> sums(4 * count);
    for (std::size_t t = 0; t < scheme.moduli.size(); ++t)
        ozaki_kernels().accumulate(scheme.moduli[t], residues.data() + 2 * t * count, residues.data() + (2 * t + 1) * count, count, sums.data());
    double* out;
    auto array = make_matrix(2, count, out);
    ozaki_kernels().finish(scheme.product_high, scheme.product_low, sums.data(), count, out, out + count);
    return nb::cast(array);
}

template <class Real>
std::pair<std::int64_t, double> run(const OzakiBlock& block, Amps<Real> amps, std::vector<int> targets, std::vector<int> free,
                                    index_t fixed, double tolerance, int threads) {
    if (amps.size() >> (targets.size() + free.size()) == 0) throw std::invalid_argument("the state has fewer qubits than the block names");
    nb::gil_scoped_release release;
    const OzakiOutcome outcome = block.run(amps.data(), {std::move(targets), std::move(free), fixed}, tolerance, threads);
    return {outcome.redone, outcome.residual};
}

OzakiBlock make_block(const OzakiScheme& scheme, Matrix<std::complex<double>> matrix, In<double> weights, In<std::complex<double>> check_row,
                      int threads) {
    const std::size_t size = matrix.shape(0);
    if (matrix.shape(1) != size || weights.size() != size || check_row.size() != size)
        throw std::invalid_argument("a block has a square matrix, a weight per row and an entry of its check row per column");
    nb::gil_scoped_release release;
    return OzakiBlock(scheme, matrix.data(), size, weights.data(), check_row.data(), threads);
}

}  // namespace

void bind_ozaki(nb::module_& m) {
    m.def("ozaki_isa", [] { return std::string(ozaki_kernels().name); }, "Name of the instruction set of the emulated product.");
    m.def("ozaki_product", &product, "matrix"_a, "columns"_a, "INT32 sums [column, row] of rows times columns of int8.");
    nb::class_<OzakiScheme>(m, "OzakiScheme")
        .def(nb::new_(&make_scheme), "moduli"_a, "exponents"_a, "product"_a)
        .def("encode", &encode, "re"_a, "im"_a)
        .def("reduce", &reduce, "modulus"_a, "sums"_a)
        .def("reconstruct", &reconstruct, "residues"_a);
    nb::class_<OzakiBlock>(m, "OzakiBlock")
        .def(nb::new_(&make_block), "scheme"_a, "matrix"_a, "weights"_a, "check_row"_a, "threads"_a = 1)
        .def_prop_ro("residues", [](nb::handle self) {
            auto& residues = nb::cast<OzakiBlock&>(self).residues();
            return nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(residues.data(), {residues.size()}, self);
        })
        .def("run", &run<double>, "amps"_a, "targets"_a, "free"_a, "fixed"_a, "tolerance"_a, "threads"_a)
        .def("run", &run<float>, "amps"_a, "targets"_a, "free"_a, "fixed"_a, "tolerance"_a, "threads"_a);
}

}  // namespace qsim
