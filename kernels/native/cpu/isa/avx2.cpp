// cpu/isa/avx2.cpp -- the tile kernels with 32-byte vectors.
#define QSIM_ISA isa_avx2
#define QSIM_VECTOR_BYTES 32
#include "cpu/isa/isa.hpp"

namespace qsim {
const TileKernels kernels_avx2 = {"avx2", QSIM_VECTOR_BYTES / 8, QSIM_VECTOR_BYTES / 4,
                                isa_avx2::kMaxRotations, isa_avx2::run_tiles<double>, isa_avx2::run_tiles<float>,
                                {isa_avx2::stack_apply, isa_avx2::stack_overlap}};
}  // namespace qsim
