// tile/dispatch.cuh -- one operator of a tile program on the amplitudes in registers: the code chooses the function.
// Codes are warp-uniform: every thread of the grid runs the same program. Register bits are compile-time in each case.
#pragma once
#include "tile/lookups.cuh"
#include "tile/parity.cuh"

template <int N>
__device__ __forceinline__ void apply(amp_t (&a)[N], const index_t* program, const Op& op, index_t base) {
    if constexpr (N > 16) {
        switch (code_of(op)) {
            case kHadamard + 4: hadamard<4>(a); return;
            case kRotate + 4: rotate<4>(a, real_at(program, op)); return;
            case kRotateFar + 4: rotate_far<4>(a, real_at(program, op)); return;
            case kFlip + 4: flip<4>(a, program, op, base); return;
            case kMatrix2 + 4: matrix2<4>(a, program, op, base); return;
            case kMatrix4 + 4: matrix4<0, 4>(a, program, op, base); return;
            case kMatrix4 + 12: matrix4<1, 4>(a, program, op, base); return;
            case kMatrix4 + 20: matrix4<2, 4>(a, program, op, base); return;
            case kMatrix4 + 28: matrix4<3, 4>(a, program, op, base); return;
            default: break;
        }
    }
    switch (code_of(op)) {
        case kHadamardAll: hadamard_all(a); break;
        case kRotateAll: rotate_all(a, program, op); break;
        case kPhaseTable: phase_table(a, program, op, base); break;
        case kFactor: factor(a, program, op, base); break;
        case kSign: sign(a, program, op, base); break;
        case kDiagonal: diagonal(a, program, op, base); break;
        case kParity: parity_factors(a, program, op, base); break;
        case kScale: scale_all(a, real_at(program, op)); break;
        case kHadamard + 0: hadamard<0>(a); break;
        case kHadamard + 1: hadamard<1>(a); break;
        case kHadamard + 2: hadamard<2>(a); break;
        case kHadamard + 3: hadamard<3>(a); break;
        case kRotate + 0: rotate<0>(a, real_at(program, op)); break;
        case kRotate + 1: rotate<1>(a, real_at(program, op)); break;
        case kRotate + 2: rotate<2>(a, real_at(program, op)); break;
        case kRotate + 3: rotate<3>(a, real_at(program, op)); break;
        case kRotateFar + 0: rotate_far<0>(a, real_at(program, op)); break;
        case kRotateFar + 1: rotate_far<1>(a, real_at(program, op)); break;
        case kRotateFar + 2: rotate_far<2>(a, real_at(program, op)); break;
        case kRotateFar + 3: rotate_far<3>(a, real_at(program, op)); break;
        case kFlip + 0: flip<0>(a, program, op, base); break;
        case kFlip + 1: flip<1>(a, program, op, base); break;
        case kFlip + 2: flip<2>(a, program, op, base); break;
        case kFlip + 3: flip<3>(a, program, op, base); break;
        case kMatrix2 + 0: matrix2<0>(a, program, op, base); break;
        case kMatrix2 + 1: matrix2<1>(a, program, op, base); break;
        case kMatrix2 + 2: matrix2<2>(a, program, op, base); break;
        case kMatrix2 + 3: matrix2<3>(a, program, op, base); break;
        case kMatrix4 + 1: matrix4<0, 1>(a, program, op, base); break;
        case kMatrix4 + 2: matrix4<0, 2>(a, program, op, base); break;
        case kMatrix4 + 3: matrix4<0, 3>(a, program, op, base); break;
        case kMatrix4 + 10: matrix4<1, 2>(a, program, op, base); break;
        case kMatrix4 + 11: matrix4<1, 3>(a, program, op, base); break;
        case kMatrix4 + 19: matrix4<2, 3>(a, program, op, base); break;
        default: __trap();  // an unknown code is a bug of the packer
    }
}
