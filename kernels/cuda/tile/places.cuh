// tile/places.cuh -- operators of straight.cuh on the amplitudes in registers: which register indices is known when they compile.
// kOn is a set of register indices, kMask and kValue a condition on them; constants are operands from constant memory.
#pragma once
#include "tile/gates.cuh"

// The sign bit of (-1)^(number of ones).
__device__ __forceinline__ unsigned parity(unsigned thread_bits) { return (unsigned)__popc(thread_bits) << 31; }
__device__ __forceinline__ unsigned parity(index_t base_bits) { return (unsigned)__popcll(base_bits) << 31; }
__device__ __forceinline__ unsigned sign_where(bool on) { return on ? 0x80000000u : 0u; }

__device__ __forceinline__ double with_sign(double x, unsigned sign) {
    return __hiloint2double(__double2hiint(x) ^ (int)sign, __double2loint(x));
}
__device__ __forceinline__ float with_sign(float x, unsigned sign) { return __int_as_float(__float_as_int(x) ^ (int)sign); }
// Operators on the register indices r of kOn.
template <unsigned kOn>
__device__ __forceinline__ void flip_sign(Amps& a, unsigned sign) {
#pragma unroll
    for (int r = 0; r < kAmps; ++r)
        if ((kOn >> r) & 1) a[r] = {with_sign(a[r].x, sign), with_sign(a[r].y, sign)};
}

template <unsigned kOn>
__device__ __forceinline__ void negate(Amps& a) {
#pragma unroll
    for (int r = 0; r < kAmps; ++r)
        if ((kOn >> r) & 1) a[r] = {-a[r].x, -a[r].y};
}

template <unsigned kOn>
__device__ __forceinline__ void times(Amps& a, amp_t w) {
#pragma unroll
    for (int r = 0; r < kAmps; ++r)
        if ((kOn >> r) & 1) a[r] = cmul(a[r], w);
}

// Times 1 + it where a parity is odd, 1 - it where it is even. kOdd: register indices that are odd; `sign`: the parity of outer bits.
template <unsigned kOdd>
__device__ __forceinline__ void turn_by_parity(Amps& a, real_t t, unsigned sign) {
    const real_t u = with_sign(t, sign);
#pragma unroll
    for (int r = 0; r < kAmps; ++r) {
        const real_t s = (kOdd >> r) & 1 ? u : -u;
        a[r] = {a[r].x - s * a[r].y, a[r].y + s * a[r].x};
    }
}

// Times c[0] + i c[1] where the parity is even, c[2] + i c[3] where it is odd.
template <unsigned kOdd>
__device__ __forceinline__ void times_by_parity(Amps& a, const real_t* c, unsigned sign) {
    const bool odd = sign >> 31;
    const amp_t w0 = {odd ? c[2] : c[0], odd ? c[3] : c[1]}, w1 = {odd ? c[0] : c[2], odd ? c[1] : c[3]};
#pragma unroll
    for (int r = 0; r < kAmps; ++r) a[r] = cmul(a[r], (kOdd >> r) & 1 ? w1 : w0);
}

// Bits of r at the places of kSupport, packed.
template <unsigned kSupport>
__device__ __forceinline__ constexpr int packed(int r) {
    int out = 0, at = 0;
    for (int b = 0; b < kRegisterQubits; ++b)
        if ((kSupport >> b) & 1) out |= ((r >> b) & 1) << at++;
    return out;
}

// Times a constant that depends on the register bits of kSupport: c[0] is of no bit set.
template <unsigned kOn, unsigned kSupport>
__device__ __forceinline__ void times_each(Amps& a, const real_t* c) {
#pragma unroll
    for (int r = 0; r < kAmps; ++r)
        if ((kOn >> r) & 1) a[r] = cmul(a[r], amp_t{c[2 * packed<kSupport>(r)], c[2 * packed<kSupport>(r) + 1]});
}

// The same where the constants of j and of its complement are equal or conjugate, but for a sign: half of them are enough.
template <unsigned kSupport, bool kConjugate, unsigned kNegative>
__device__ __forceinline__ void times_mirrored(Amps& a, const real_t* c) {
    constexpr int kLast = packed<kSupport>(kAmps - 1);
#pragma unroll
    for (int r = 0; r < kAmps; ++r) {
        const int j = packed<kSupport>(r), k = 2 * j > kLast ? kLast - j : j;
        const amp_t w = {c[2 * k], kConjugate && k != j ? -c[2 * k + 1] : c[2 * k + 1]};
        a[r] = cmul(a[r], (kNegative >> j) & 1 ? amp_t{-w.x, -w.y} : w);
    }
}

// X on register bit B where r has kValue under kMask; the second form only in threads where `on` holds.
template <int B, unsigned kMask, unsigned kValue>
__device__ __forceinline__ void flip_bit(Amps& a) {
    each_pair<B>(a, [](amp_t& x0, amp_t& x1, int r) {
        if ((r & kMask) == kValue) {
            const amp_t y = x0;
            x0 = x1;
            x1 = y;
        }
    });
}
template <int B, unsigned kMask, unsigned kValue>
__device__ __forceinline__ void flip_bit(Amps& a, bool on) {
    each_pair<B>(a, [on](amp_t& x0, amp_t& x1, int r) {
        if ((r & kMask) == kValue) {
            const amp_t y0 = {on ? x1.x : x0.x, on ? x1.y : x0.y};
            x1 = {on ? x0.x : x1.x, on ? x0.y : x1.y};
            x0 = y0;
        }
    });
}

__device__ __forceinline__ void matrix2_on(amp_t& x0, amp_t& x1, const real_t* m) {
    amp_t y0 = cmul(x0, amp_t{m[0], m[1]});
    cfma(y0, x1, amp_t{m[2], m[3]});
    amp_t y1 = cmul(x1, amp_t{m[6], m[7]});
    cfma(y1, x0, amp_t{m[4], m[5]});
    x0 = y0;
    x1 = y1;
}

template <int B, unsigned kMask, unsigned kValue>
__device__ __forceinline__ void matrix2_by(Amps& a, const real_t* m) {
    each_pair<B>(a, [m](amp_t& x0, amp_t& x1, int r) {
        if ((r & kMask) == kValue) matrix2_on(x0, x1, m);
    });
}

// A 4x4 matrix without entries between states of unlike parity: 2x2 blocks on {00, 11} and {01, 10}.
template <int A, int B, unsigned kMask, unsigned kValue>
__device__ __forceinline__ void core4_by(Amps& a, const real_t* m) {
#pragma unroll
    for (int r = 0; r < kAmps; ++r)
        if ((r & place4<A, B>(3)) == 0 && (r & kMask) == kValue) {
            matrix2_on(a[r], a[r | place4<A, B>(3)], m);
            matrix2_on(a[r | place4<A, B>(1)], a[r | place4<A, B>(2)], m + 8);
        }
}

// x1 times 1 + ip or p + i, then (x0 - u x1, x1 + v x0) or (u x0 - x1, x0 + v x1), where t is p, u, v.
template <bool kUpright, bool kNear>
__device__ __forceinline__ void turn_on(amp_t& x0, amp_t& x1, const real_t* t) {
    const real_t p = t[0], u = t[1], v = t[2];
    const amp_t x = kUpright ? amp_t{x1.x - p * x1.y, x1.y + p * x1.x} : amp_t{p * x1.x - x1.y, p * x1.y + x1.x};
    x1 = kNear ? amp_t{x.x + v * x0.x, x.y + v * x0.y} : amp_t{x0.x + v * x.x, x0.y + v * x.y};
    x0 = kNear ? amp_t{x0.x - u * x.x, x0.y - u * x.y} : amp_t{u * x0.x - x.x, u * x0.y - x.y};
}

// The same on {00, 11} by the first three of t and on {10, 01} by the others: bit 0 of both is register bit A.
template <int A, int B, bool kUprightEven, bool kNearEven, bool kUprightOdd, bool kNearOdd>
__device__ __forceinline__ void turn4_by(Amps& a, const real_t* t) {
    constexpr int kLow = 1 << A, kHigh = 1 << B;
#pragma unroll
    for (int r = 0; r < kAmps; ++r)
        if ((r & (kLow | kHigh)) == 0) {
            turn_on<kUprightEven, kNearEven>(a[r], a[r | kLow | kHigh], t);
            turn_on<kUprightOdd, kNearOdd>(a[r | kHigh], a[r | kLow], t + 3);
        }
}

// A < B; matrix index bit 0 is register bit A.
template <int A, int B, unsigned kMask, unsigned kValue>
__device__ __forceinline__ void matrix4_by(Amps& a, const real_t* m) {
#pragma unroll
    for (int r = 0; r < kAmps; ++r) {
        if ((r & place4<A, B>(3)) == 0 && (r & kMask) == kValue) {
            amp_t y[4];
#pragma unroll
            for (int row = 0; row < 4; ++row) {
                y[row] = cmul(a[r], amp_t{m[8 * row], m[8 * row + 1]});
#pragma unroll
                for (int column = 1; column < 4; ++column)
                    cfma(y[row], a[r | place4<A, B>(column)], amp_t{m[8 * row + 2 * column], m[8 * row + 2 * column + 1]});
            }
#pragma unroll
            for (int row = 0; row < 4; ++row) a[r | place4<A, B>(row)] = y[row];
        }
    }
}
