// cpu/ozaki/portable.cpp -- the emulated product's kernels, for any machine.
#define QSIM_ISA ozaki_portable
#include "cpu/ozaki/kernels.hpp"

namespace qsim {
const OzakiKernels ozaki_kernels_portable = {"portable", ozaki_portable::encode, ozaki_portable::product, ozaki_portable::reduce, ozaki_portable::accumulate,
                                        ozaki_portable::finish};
}  // namespace qsim
