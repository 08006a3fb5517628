// tile_gates.cuh -- the operators of tile_exec.cu on the amplitudes that a thread holds in registers.
// Register index r has bit b for the tile position that the current layout put into register b. Array indices are compile-time.
// Conditions: an operator acts where (basis state & w1) == w2 and (r & register_mask) == register_value.
#pragma once
#include "common.cuh"

// Codes as in cuda_program.py; families have one code per register bit b, or per pair a < b.
enum Code : unsigned {
    kEnd = 0,
    kExchange = 1,     // w3 layout
    kPermute = 2,      // w1, w2 condition, w3 data: any permutation with phases inside the tile
    kMatrixAll = 3,    // w1, w2 condition, w3 matrix on all register qubits
    kPhaseTable = 4,   // arg number of selecting qubits, w1 their positions, w3 2^arg tables of kAmps phases
    kFactor = 5,       // arg register mask and number of terms, w1 angle, w3 terms
    kSign = 6,         // the same, where every angle is a half turn
    kDiagonal = 7,     // any diagonal, looked up in memory
    kScale = 8,        // w1 real factor
    kHadamard = 16,    // + b
    kRotate = 24,      // + b: y0 = x0 - t x1, y1 = x1 + t x0, w1 = t
    kRotateFar = 32,   // + b: y0 = t x0 - x1, y1 = x0 + t x1
    kFlip = 40,        // + b: x0 <-> x1
    kMatrix2 = 48,     // + b: w3 2x2 matrix
    kMatrix4 = 64,     // + 8 a + b: w3 4x4 matrix, bit a is matrix bit 0
};
constexpr int kThreadTable = kIsDouble ? 8 : 10;  // words before the (offset, slot) pairs of a layout record

using Amps = amp_t[kAmps];

struct Op {
    unsigned code, arg;
    index_t w1, w2, w3;
};

__device__ __forceinline__ Op fetch(const index_t* word) {
    ulonglong2 first = __ldg(reinterpret_cast<const ulonglong2*>(word));
    ulonglong2 second = __ldg(reinterpret_cast<const ulonglong2*>(word) + 1);
    return {(unsigned)first.x, (unsigned)(first.x >> 32), first.y, second.x, second.y};
}

// Hides a value's origin, or the compiler tests all register indices against it once before the switch and keeps the results.
__device__ __forceinline__ unsigned hidden(unsigned x) {
    asm volatile("" : "+r"(x));
    return x;
}
template <class T>
__device__ __forceinline__ T* hidden(T* x) {
    asm volatile("" : "+l"(x));
    return x;
}

// Register indices in Gray order: one running pointer instead of an address per amplitude.
__device__ __forceinline__ constexpr int gray(int i) { return i ^ (i >> 1); }
__device__ __forceinline__ long long gray_step(const index_t* strides, int i) {
    const int changed = gray(i) ^ gray(i + 1), bit = changed == 1 ? 0 : changed == 2 ? 1 : changed == 4 ? 2 : changed == 8 ? 3 : 4;
    const long long stride = (long long)__ldg(strides + bit);
    return gray(i + 1) & changed ? stride : -stride;
}

template <int B, class Pair>
__device__ __forceinline__ void each_pair(Amps& a, Pair pair) {
#pragma unroll
    for (int i = 0; i < kAmps / 2; ++i) {
        const int r = ((i >> B) << (B + 1)) | (i & ((1 << B) - 1));
        pair(a[r], a[r | (1 << B)], r);
    }
}

template <int B>
__device__ __forceinline__ void hadamard(Amps& a) {  // without the factor 1/sqrt(2)
    each_pair<B>(a, [](amp_t& x0, amp_t& x1, int) {
        amp_t sum = {x0.x + x1.x, x0.y + x1.y};
        x1 = {x0.x - x1.x, x0.y - x1.y};
        x0 = sum;
    });
}

template <int B>
__device__ __forceinline__ void rotate(Amps& a, real_t t) {
    each_pair<B>(a, [t](amp_t& x0, amp_t& x1, int) {
        amp_t y0 = {x0.x - t * x1.x, x0.y - t * x1.y};
        x1 = {x1.x + t * x0.x, x1.y + t * x0.y};
        x0 = y0;
    });
}

template <int B>
__device__ __forceinline__ void rotate_far(Amps& a, real_t t) {
    each_pair<B>(a, [t](amp_t& x0, amp_t& x1, int) {
        amp_t y0 = {t * x0.x - x1.x, t * x0.y - x1.y};
        x1 = {x0.x + t * x1.x, x0.y + t * x1.y};
        x0 = y0;
    });
}

template <int B>
__device__ __forceinline__ void flip(Amps& a, const Op& op, index_t base) {
    const bool on = (base & op.w1) == op.w2;
    const unsigned mask = hidden(op.arg & 31), value = (op.arg >> 8) & 31;
    each_pair<B>(a, [=](amp_t& x0, amp_t& x1, int r) {
        const bool swap = on && (r & mask) == value;
        amp_t y0 = {swap ? x1.x : x0.x, swap ? x1.y : x0.y};
        x1 = {swap ? x0.x : x1.x, swap ? x0.y : x1.y};
        x0 = y0;
    });
}

template <int B>
__device__ __forceinline__ void matrix2(Amps& a, const index_t* program, const Op& op, index_t base) {
    if ((base & op.w1) != op.w2) return;
    const unsigned mask = hidden(op.arg & 31), value = (op.arg >> 8) & 31;
    const amp_t* m = reinterpret_cast<const amp_t*>(program + op.w3);
    const amp_t m00 = __ldg(m), m01 = __ldg(m + 1), m10 = __ldg(m + 2), m11 = __ldg(m + 3);
    each_pair<B>(a, [=](amp_t& x0, amp_t& x1, int r) {
        if ((r & mask) == value) {
            amp_t y0 = cmul(x0, m00);
            cfma(y0, x1, m01);
            amp_t y1 = cmul(x1, m11);
            cfma(y1, x0, m10);
            x0 = y0;
            x1 = y1;
        }
    });
}

// A < B; matrix index bit 0 is register bit A.
template <int A, int B>
__device__ __forceinline__ void matrix4(Amps& a, const index_t* program, const Op& op, index_t base) {
    if ((base & op.w1) != op.w2) return;
    const unsigned mask = hidden(op.arg & 31), value = (op.arg >> 8) & 31;
    const amp_t* m = reinterpret_cast<const amp_t*>(program + op.w3);
    constexpr int kRest = (kAmps - 1) & ~(1 << A) & ~(1 << B);
#pragma unroll
    for (int r = 0; r < kAmps; ++r) {
        if ((r & ~kRest) == 0 && (r & mask) == value) {
            amp_t y[4];
#pragma unroll
            for (int row = 0; row < 4; ++row) {
                y[row] = cmul(a[r], __ldg(m + row * 4));
                cfma(y[row], a[r | (1 << A)], __ldg(m + row * 4 + 1));
                cfma(y[row], a[r | (1 << B)], __ldg(m + row * 4 + 2));
                cfma(y[row], a[r | (1 << A) | (1 << B)], __ldg(m + row * 4 + 3));
            }
            a[r] = y[0];
            a[r | (1 << A)] = y[1];
            a[r | (1 << B)] = y[2];
            a[r | (1 << A) | (1 << B)] = y[3];
        }
    }
}

// a[r] *= table[bits of the basis state at the selecting qubits][r]
__device__ __forceinline__ void phase_table(Amps& a, const index_t* program, const Op& op, index_t base) {
    unsigned select = 0;
    for (unsigned i = 0; i < op.arg; ++i) select |= (unsigned)((base >> ((op.w1 >> (8 * i)) & 255)) & 1) << i;
    const amp_t* table = reinterpret_cast<const amp_t*>(program + op.w3) + select * kAmps;
#pragma unroll
    for (int r = 0; r < kAmps; ++r) a[r] = cmul(a[r], __ldg(table + r));
}

// angle = w1 + sum over terms where (base & require) == require of (((base >> shift) & mask) | one) * multiplier, modulo one turn.
__device__ __forceinline__ index_t total_angle(const index_t* program, const Op& op, index_t base) {
    index_t angle = op.w1;
    const ulonglong2* term = reinterpret_cast<const ulonglong2*>(program + op.w3);
    for (unsigned i = 0; i < op.arg >> 8; ++i) {
        ulonglong2 first = __ldg(term + 2 * i), second = __ldg(term + 2 * i + 1);  // require, multiplier; mask, shift and one
        index_t value = ((base >> (second.y & 63)) & second.x) | (second.y >> 32);
        if ((base & first.x) == first.x) angle += value * first.y;
    }
    return angle;
}

__device__ __forceinline__ void factor(Amps& a, const index_t* program, const Op& op, index_t base) {
    const unsigned mask = hidden(op.arg & 31);
    const amp_t w = unit(total_angle(program, op, base));
#pragma unroll
    for (int r = 0; r < kAmps; ++r)
        if ((r & mask) == mask) a[r] = cmul(a[r], w);
}

__device__ __forceinline__ void sign(Amps& a, const index_t* program, const Op& op, index_t base) {
    const unsigned mask = hidden(op.arg & 31);
    const bool negative = total_angle(program, op, base) >> 63;
#pragma unroll
    for (int r = 0; r < kAmps; ++r)
        if ((r & mask) == mask) {
            a[r].x = negative ? -a[r].x : a[r].x;
            a[r].y = negative ? -a[r].y : a[r].y;
        }
}

// Looked-up operators. Data words: pointer to entries, pointer to sources, contributions of the register bits to the entry's
// index, then one qubit position per index bit (64 where a register bit holds it), then one slot mask per index bit.
__device__ __forceinline__ index_t entry_index(const index_t* data, unsigned k, index_t base) {
    index_t entry = 0;
    for (unsigned i = 0; i < k; ++i) {
        const index_t position = __ldg(data + 2 + kRegisterQubits + i);
        if (position < 64) entry |= ((base >> position) & 1) << i;
    }
    return entry;
}

__device__ __forceinline__ void diagonal(Amps& a, const index_t* program, const Op& op, index_t base) {
    if ((base & op.w1) != op.w2) return;
    const unsigned mask = hidden(op.arg & 31), value = (op.arg >> 8) & 31;
    const index_t* data = program + op.w3;
    const amp_t* entries = reinterpret_cast<const amp_t*>(__ldg(data));
    entries += entry_index(data, op.arg >> 16, base);
#pragma unroll
    for (int i = 0; i < kAmps; ++i) {
        const int r = gray(i);
        if ((r & mask) == value) a[r] = cmul(a[r], __ldg(entries));
        if (i < kAmps - 1) entries = hidden(entries + gray_step(data + 2, i));
    }
}

__device__ __forceinline__ void permute(Amps& a, const index_t* program, const Op& op, index_t base, unsigned slot,
                                        unsigned layout, const char* shared) {
    if ((base & op.w1) != op.w2) return;
    const unsigned mask = hidden(op.arg & 31), value = (op.arg >> 8) & 31, k = op.arg >> 16;
    const index_t* data = program + op.w3;
    const amp_t* entries = reinterpret_cast<const amp_t*>(__ldg(data));
    const unsigned* sources = reinterpret_cast<const unsigned*>(__ldg(data + 1));
    const unsigned first = (unsigned)entry_index(data, k, base);
#pragma unroll
    for (int r = 0; r < kAmps; ++r)
        if ((r & mask) == value) {
            unsigned entry = first, from = slot;
#pragma unroll
            for (int b = 0; b < kRegisterQubits; ++b)
                if ((r >> b) & 1) {
                    entry += (unsigned)__ldg(data + 2 + b);
                    from ^= (unsigned)__ldg(program + layout + kRegisterQubits + b);
                }
            const unsigned source = __ldg(hidden(sources + entry));  // amplitude `source` goes to `entry`
            for (unsigned i = 0; i < k; ++i)
                if (((source ^ entry) >> i) & 1) from ^= (unsigned)__ldg(data + 2 + kRegisterQubits + k + i);
            a[r] = cmul(*reinterpret_cast<const amp_t*>(shared + hidden(from)), __ldg(hidden(entries + source)));
        }
}

template <int N>
__device__ __forceinline__ void apply(amp_t (&a)[N], const index_t* program, const Op& op, index_t base) {
    const real_t t = (real_t)__longlong_as_double((long long)op.w1);
    if constexpr (N > 16) {
        switch (op.code) {
            case kHadamard + 4: hadamard<4>(a); return;
            case kRotate + 4: rotate<4>(a, t); return;
            case kRotateFar + 4: rotate_far<4>(a, t); return;
            case kFlip + 4: flip<4>(a, op, base); return;
            case kMatrix2 + 4: matrix2<4>(a, program, op, base); return;
            case kMatrix4 + 4: matrix4<0, 4>(a, program, op, base); return;
            case kMatrix4 + 12: matrix4<1, 4>(a, program, op, base); return;
            case kMatrix4 + 20: matrix4<2, 4>(a, program, op, base); return;
            case kMatrix4 + 28: matrix4<3, 4>(a, program, op, base); return;
            default: break;
        }
    }
    switch (op.code) {
        case kPhaseTable: phase_table(a, program, op, base); break;
        case kFactor: factor(a, program, op, base); break;
        case kSign: sign(a, program, op, base); break;
        case kDiagonal: diagonal(a, program, op, base); break;
        case kScale:
#pragma unroll
            for (int r = 0; r < kAmps; ++r) a[r] = {a[r].x * t, a[r].y * t};
            break;
        case kHadamard + 0: hadamard<0>(a); break;
        case kHadamard + 1: hadamard<1>(a); break;
        case kHadamard + 2: hadamard<2>(a); break;
        case kHadamard + 3: hadamard<3>(a); break;
        case kRotate + 0: rotate<0>(a, t); break;
        case kRotate + 1: rotate<1>(a, t); break;
        case kRotate + 2: rotate<2>(a, t); break;
        case kRotate + 3: rotate<3>(a, t); break;
        case kRotateFar + 0: rotate_far<0>(a, t); break;
        case kRotateFar + 1: rotate_far<1>(a, t); break;
        case kRotateFar + 2: rotate_far<2>(a, t); break;
        case kRotateFar + 3: rotate_far<3>(a, t); break;
        case kFlip + 0: flip<0>(a, op, base); break;
        case kFlip + 1: flip<1>(a, op, base); break;
        case kFlip + 2: flip<2>(a, op, base); break;
        case kFlip + 3: flip<3>(a, op, base); break;
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
