// cpu/dispatch/kernel_table.hpp -- the kernels of one instruction set as tables of function pointers, and the tables in use.
//
// Each file of cpu/isa and cpu/ozaki that is compiled for an instruction set fills one table; kernel_table.cpp chooses.
#pragma once

#include <cstdint>

#include "base/bits.hpp"

namespace qsim {

struct OzakiModulus;
struct StackOp;
struct StackTile;
template <class Real>
struct TileView;

// Kernels of stacks. `data` holds complex numbers, re and im interleaved; `scratch` has room for two tiles. `apply` does the
// operator or, with `adjoint`, its conjugate transpose. `overlap` adds to `out`, laid out as the operator's data, the sum of
// conj(bra[row]) ket[column] over all amplitudes where the controls are satisfied.
struct StackKernels {
    void (*apply)(const StackOp& op, const double* data, const std::int64_t* indices, bool adjoint, const StackTile& tile,
                  double* scratch);
    void (*overlap)(const StackOp& op, const StackTile& bra, const StackTile& ket, double* out, double* scratch);
};

// Kernels of tile passes and of stacks. `run_double` and `run_single` do the tiles numbered begin to end - 1.
struct TileKernels {
    const char* name;
    int lanes_double, lanes_single, max_rotations;
    void (*run_double)(const TileView<double>&, double* state, index_t begin, index_t end, double* scratch);
    void (*run_single)(const TileView<float>&, float* state, index_t begin, index_t end, float* scratch);
    StackKernels stack;
};

// Kernels of the emulated product. Residues are balanced: -(m-1)/2 to (m-1)/2.
struct OzakiKernels {
    const char* name;
    // plus/minus[j] = residue of re[j] +- root * im[j]; re, im hold integers below 2^61
    void (*encode)(const OzakiModulus& m, const double* re, const double* im, index_t count, std::int8_t* plus, std::int8_t* minus);
    // out[column][row] = sum_k matrix[row][k] * columns[column][k]; packed: [row / 16][k / 4][row % 16][k % 4], value + 128
    void (*product)(const std::uint8_t* packed, index_t rows, index_t size, const std::int8_t* columns, int num_columns, std::int32_t* out);
    void (*reduce)(const OzakiModulus& m, const std::int32_t* sums, index_t count, std::int8_t* out);
    // sums: re_high, re_low, im_high, im_low, `count` of each
    void (*accumulate)(const OzakiModulus& m, const std::int8_t* plus, const std::int8_t* minus, index_t count, double* sums);
    void (*finish)(double product_high, double product_low, const double* sums, index_t count, double* re, double* im);
};

extern const TileKernels kernels_portable, kernels_avx2, kernels_avx512;  // the latter two are defined on x86-64
extern const OzakiKernels ozaki_kernels_portable, ozaki_kernels_avx2, ozaki_kernels_vnni;

const TileKernels& tile_kernels();    // the best this machine runs, or those that QSIM_OZAKI_ISA names
const OzakiKernels& ozaki_kernels();  // the best this machine runs, within the set that QSIM_OZAKI_ISA names

int lane_bits(bool single);  // log2 of the amplitudes one vector register holds

}  // namespace qsim
