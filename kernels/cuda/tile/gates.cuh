// tile/gates.cuh -- the operators of interpreter.cu on the amplitudes that a thread holds in registers.
// Register index r has bit b for the tile position that the current layout put into register b. Array indices are compile-time.
// Conditions: an operator acts where (basis state & mask) == value, two words at `at`, and (r & register mask) == register value, in arg.
#pragma once
#include "common/common.cuh"

// Codes as in engines/cuda/interpreter.py; families have one code per register bit b, or per pair a < b.
enum Code : unsigned {
    kEnd = 0,
    kExchange = 1,     // at: layout
    kPermute = 2,      // at: condition, data: any permutation with phases inside the tile
    kMatrixAll = 3,    // at: condition, matrix on all register qubits
    kPhaseTable = 4,    // arg: number of selecting qubits; at: mask of register indices, qubits' positions, phases[r][selected]
    kFactor = 5,        // arg: register mask, number of terms; at: angle, 0, terms
    kSign = 6,          // the same, where every angle is a half turn
    kDiagonal = 7,      // at: condition, data: any diagonal, looked up in memory
    kScale = 8,         // at: real factor
    kPrefetch = 9,      // shared memory is free from here on: the next tile may come in
    kHadamardAll = 10,  // H on every register qubit
    kRotateAll = 11,    // at: t of every register qubit
    kParity = 12,       // at: mask of qubits outside the registers, set of odd register indices, factors where even and odd
    kHadamard = 16,     // + b
    kRotate = 24,       // + b: y0 = x0 - t x1, y1 = x1 + t x0, at: t
    kRotateFar = 32,    // + b: y0 = t x0 - x1, y1 = x0 + t x1
    kFlip = 40,         // + b: x0 <-> x1, at: condition
    kMatrix2 = 48,      // + b: at: condition, 2x2 matrix
    kMatrix4 = 64,      // + 8 a + b: at: condition, 4x4 matrix, bit a is matrix bit 0
};
constexpr unsigned kEvery = kAmps == 32 ? 0xffffffffu : 0xffffu;
constexpr int kThreadTable = kIsDouble ? 8 : 10;  // words before the (offset, slot) pairs of a layout record

using Amps = amp_t[kAmps];

// One word: code (8 bits), arg (24 bits) and `at` (32 bits, the word index of its data).
struct Op {
    unsigned head, at;
};
__device__ __forceinline__ unsigned code_of(const Op& op) { return op.head & 255; }
__device__ __forceinline__ unsigned arg_of(const Op& op) { return op.head >> 8; }

// Data that follows a condition starts two words later.
__device__ __forceinline__ bool holds(const index_t* condition, index_t base) {
    const ulonglong2 c = __ldg(reinterpret_cast<const ulonglong2*>(condition));
    return (base & c.x) == c.y;
}

__device__ __forceinline__ Op fetch(const index_t* word) {
    const index_t w = __ldg(word);
    return {(unsigned)w, (unsigned)(w >> 32)};
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

__device__ __forceinline__ real_t real_at(const index_t* program, const Op& op) {
    return (real_t)__ldg(reinterpret_cast<const double*>(program + op.at));
}

__device__ __forceinline__ void scale_all(Amps& a, real_t factor) {
#pragma unroll
    for (int r = 0; r < kAmps; ++r) a[r] = {a[r].x * factor, a[r].y * factor};
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
__device__ __forceinline__ void flip(Amps& a, const index_t* program, const Op& op, index_t base) {
    const bool on = holds(program + op.at, base);
    const unsigned mask = hidden(arg_of(op) & 31), value = (arg_of(op) >> 5) & 31;
    each_pair<B>(a, [=](amp_t& x0, amp_t& x1, int r) {
        const bool swap = on && (r & mask) == value;
        amp_t y0 = {swap ? x1.x : x0.x, swap ? x1.y : x0.y};
        x1 = {swap ? x0.x : x1.x, swap ? x0.y : x1.y};
        x0 = y0;
    });
}

template <int B>
__device__ __forceinline__ void matrix2(Amps& a, const index_t* program, const Op& op, index_t base) {
    if (!holds(program + op.at, base)) return;
    const unsigned mask = hidden(arg_of(op) & 31), value = (arg_of(op) >> 5) & 31;
    const amp_t* m = reinterpret_cast<const amp_t*>(program + op.at + 2);
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

template <int N>
__device__ __forceinline__ void rotate_all(amp_t (&a)[N], const index_t* program, const Op& op) {
    const double* t = reinterpret_cast<const double*>(program + op.at);
    rotate<0>(a, (real_t)__ldg(t));
    rotate<1>(a, (real_t)__ldg(t + 1));
    rotate<2>(a, (real_t)__ldg(t + 2));
    rotate<3>(a, (real_t)__ldg(t + 3));
    if constexpr (N > 16) rotate<4>(a, (real_t)__ldg(t + 4));
}

template <int N>
__device__ __forceinline__ void hadamard_all(amp_t (&a)[N]) {
    hadamard<0>(a);
    hadamard<1>(a);
    hadamard<2>(a);
    hadamard<3>(a);
    if constexpr (N > 16) hadamard<4>(a);
}

template <int A, int B>
__device__ __forceinline__ constexpr int place4(int j) {
    return (j & 1 ? 1 << A : 0) | (j & 2 ? 1 << B : 0);
}

__device__ __forceinline__ amp_t row4(const amp_t& x0, const amp_t& x1, const amp_t& x2, const amp_t& x3, const amp_t* row) {
    amp_t y = cmul(x0, __ldg(row));
    cfma(y, x1, __ldg(row + 1));
    cfma(y, x2, __ldg(row + 2));
    cfma(y, x3, __ldg(row + 3));
    return y;
}
__device__ __forceinline__ void matrix4_on(amp_t& x0, amp_t& x1, amp_t& x2, amp_t& x3, const amp_t* m) {
    const amp_t y0 = row4(x0, x1, x2, x3, m), y1 = row4(x0, x1, x2, x3, m + 4), y2 = row4(x0, x1, x2, x3, m + 8);
    x3 = row4(x0, x1, x2, x3, m + 12);
    x0 = y0;
    x1 = y1;
    x2 = y2;
}

// A < B; matrix index bit 0 is register bit A. The matrix is read anew for every four amplitudes: with a pointer whose origin it
// knows, the compiler takes seconds to find out that its entries do not fit the registers.
template <int A, int B>
__device__ __forceinline__ void matrix4(Amps& a, const index_t* program, const Op& op, index_t base) {
    if (!holds(program + op.at, base)) return;
    const amp_t* m = reinterpret_cast<const amp_t*>(program + op.at + 2);
    const unsigned mask = hidden(arg_of(op) & 31), value = (arg_of(op) >> 5) & 31;
#pragma unroll
    for (int i = 0; i < kAmps / 4; ++i) {
        const int low = ((i >> A) << (A + 1)) | (i & ((1 << A) - 1)), r = ((low >> B) << (B + 1)) | (low & ((1 << B) - 1));
        if ((r & mask) == value) matrix4_on(a[r], a[r | place4<A, B>(1)], a[r | place4<A, B>(2)], a[r | place4<A, B>(3)], hidden(m));
    }
}

// a[r] *= phases[r][bits of the basis state at the selecting qubits]: lanes that select differently read neighbours.
__device__ __forceinline__ void phase_table(Amps& a, const index_t* program, const Op& op, index_t base) {
    const unsigned bits = arg_of(op);
    const index_t positions = __ldg(program + op.at + 1);
    unsigned select = 0;
    for (unsigned i = 0; i < bits; ++i) select |= (unsigned)((base >> ((positions >> (8 * i)) & 255)) & 1) << i;
    const unsigned needed = hidden((unsigned)__ldg(program + op.at));  // register indices whose phase is not 1
    const amp_t* table = reinterpret_cast<const amp_t*>(program + op.at + 2) + select;
    if (kIsDouble && needed == kEvery) {  // one branch per 8, so that several loads are in flight, but not so many that registers spill
        const unsigned every = hidden(needed);
#pragma unroll
        for (int first = 0; first < kAmps; first += 8)
            if ((every >> first) & 1) {
#pragma unroll
                for (int r = first; r < first + 8; ++r) a[r] = cmul(a[r], __ldg(table + (r << bits)));
            }
    } else {
#pragma unroll
        for (int r = 0; r < kAmps; ++r)
            if ((needed >> r) & 1) a[r] = cmul(a[r], __ldg(table + (r << bits)));
    }
}

// angle = constant + sum over terms where (base & require) == require of (((base >> shift) & mask) | one) * multiplier, modulo one turn.
__device__ __forceinline__ index_t total_angle(const index_t* program, const Op& op, index_t base) {
    index_t angle = __ldg(program + op.at);
    const ulonglong2* term = reinterpret_cast<const ulonglong2*>(program + op.at + 2);
    for (unsigned i = 0; i < arg_of(op) >> 5; ++i) {
        ulonglong2 first = __ldg(term + 2 * i), second = __ldg(term + 2 * i + 1);  // require, multiplier; mask, shift and one
        index_t value = ((base >> (second.y & 63)) & second.x) | (second.y >> 32);
        if ((base & first.x) == first.x) angle += value * first.y;
    }
    return angle;
}

__device__ __forceinline__ void factor(Amps& a, const index_t* program, const Op& op, index_t base) {
    const unsigned mask = hidden(arg_of(op) & 31);
    const amp_t w = unit(total_angle(program, op, base));
#pragma unroll
    for (int r = 0; r < kAmps; ++r)
        if ((r & mask) == mask) a[r] = cmul(a[r], w);
}

__device__ __forceinline__ void sign(Amps& a, const index_t* program, const Op& op, index_t base) {
    const unsigned mask = hidden(arg_of(op) & 31);
    const bool negative = total_angle(program, op, base) >> 63;
#pragma unroll
    for (int r = 0; r < kAmps; ++r)
        if ((r & mask) == mask) {
            a[r].x = negative ? -a[r].x : a[r].x;
            a[r].y = negative ? -a[r].y : a[r].y;
        }
}
