// bind/ozaki.hpp -- the Python face of the emulated product.
#pragma once

#include <nanobind/nanobind.h>

namespace qsim {
void bind_ozaki(nanobind::module_& m);
}
