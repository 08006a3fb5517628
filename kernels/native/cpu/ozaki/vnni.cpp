// cpu/ozaki/vnni.cpp -- the emulated product's kernels, with 64-byte vectors and INT8 dot products.
#define QSIM_ISA ozaki_vnni
#include "cpu/ozaki/kernels.hpp"

namespace qsim {
const OzakiKernels ozaki_kernels_vnni = {"vnni", ozaki_vnni::encode, ozaki_vnni::product, ozaki_vnni::reduce, ozaki_vnni::accumulate,
                                        ozaki_vnni::finish};
}  // namespace qsim
