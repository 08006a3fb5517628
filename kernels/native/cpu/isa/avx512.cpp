// cpu/isa/avx512.cpp -- the tile kernels with 64-byte vectors.
#define QSIM_ISA isa_avx512
#define QSIM_VECTOR_BYTES 64
#include "cpu/isa/isa.hpp"

namespace qsim {
const TileKernels kernels_avx512 = {"avx512", QSIM_VECTOR_BYTES / 8, QSIM_VECTOR_BYTES / 4,
                                isa_avx512::kMaxRotations, isa_avx512::run_tiles<double>, isa_avx512::run_tiles<float>,
                                {isa_avx512::stack_apply, isa_avx512::stack_overlap}};
}  // namespace qsim
