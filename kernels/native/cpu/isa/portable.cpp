// cpu/isa/portable.cpp -- the tile kernels with 16-byte vectors.
#define QSIM_ISA isa_portable
#define QSIM_VECTOR_BYTES 16
#include "cpu/isa/isa.hpp"

namespace qsim {
const TileKernels kernels_portable = {"portable", QSIM_VECTOR_BYTES / 8, QSIM_VECTOR_BYTES / 4,
                                isa_portable::kMaxRotations, isa_portable::run_tiles<double>, isa_portable::run_tiles<float>,
                                {isa_portable::stack_apply, isa_portable::stack_overlap}};
}  // namespace qsim
