// bind/bind.hpp -- array types of the Python bindings, and one function per file that adds to the module.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <complex>
#include <cstddef>
#include <vector>

namespace qsim {

namespace nb = nanobind;

using ComplexIn = nb::ndarray<const std::complex<double>, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using IndexIn = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MatrixIn = nb::ndarray<const std::complex<double>, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using RealIn = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A new NumPy array of `size` uninitialised numbers.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> make_array(std::size_t size) {
    T* data = new T[size];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner);
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> as_array(const std::vector<T>& values) {
    auto out = make_array<T>(values.size());
    std::copy(values.begin(), values.end(), out.data());
    return out;
}

void bind_angles(nb::module_& m);
void bind_histories(nb::module_& m);
void bind_ops(nb::module_& m);
void bind_outcomes(nb::module_& m);
void bind_ozaki(nb::module_& m);
void bind_stages(nb::module_& m);
void bind_stacks(nb::module_& m);

}  // namespace qsim
