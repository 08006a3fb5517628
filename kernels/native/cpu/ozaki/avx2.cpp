// cpu/ozaki/avx2.cpp -- the emulated product's kernels, with 32-byte vectors.
#define QSIM_ISA ozaki_avx2
#include "cpu/ozaki/kernels.hpp"

namespace qsim {
const OzakiKernels ozaki_kernels_avx2 = {"avx2", ozaki_avx2::encode, ozaki_avx2::product, ozaki_avx2::reduce, ozaki_avx2::accumulate,
                                        ozaki_avx2::finish};
}  // namespace qsim
