// common/common.cuh -- types and small index and complex functions that every kernel here shares.
// QSIM_REAL is double (complex128 states) or float (complex64).
#pragma once

#ifndef QSIM_REAL
#define QSIM_REAL double
#endif

using real_t = QSIM_REAL;
using index_t = unsigned long long;  // basis states and element offsets: 64-bit, always

template <class Real>
struct pair_of;
template <>
struct pair_of<double> {
    using type = double2;
};
template <>
struct pair_of<float> {
    using type = float2;
};
using amp_t = pair_of<real_t>::type;

constexpr bool kIsDouble = sizeof(real_t) == 8;
constexpr int kLineQubits = kIsDouble ? 3 : 4;        // 2^kLineQubits amplitudes fill one 128-byte line
#ifdef QSIM_REGISTERS
constexpr int kRegisterQubits = QSIM_REGISTERS;       // a thread of a generated kernel holds 2^kRegisterQubits amplitudes
#else
constexpr int kRegisterQubits = kIsDouble ? 4 : 5;    // a thread of the interpreter holds them in 64 registers
#endif
constexpr int kAmps = 1 << kRegisterQubits;
constexpr int kTileThreads = 256;                     // of a 64 KiB tile: 2^12 complex128 or 2^13 complex64 amplitudes

// Two rounded products and two fused ones; exact where w is +-1 or +-i.
__device__ __forceinline__ amp_t cmul(amp_t a, amp_t w) {
    amp_t out;
    out.x = a.x * w.x - a.y * w.y;
    out.y = a.x * w.y + a.y * w.x;
    return out;
}

// sum += a * w
__device__ __forceinline__ void cfma(amp_t& sum, amp_t a, amp_t w) {
    sum.x += a.x * w.x;
    sum.x -= a.y * w.y;
    sum.y += a.x * w.y;
    sum.y += a.y * w.x;
}

__device__ __forceinline__ double norm2(amp_t a) { return (double)a.x * (double)a.x + (double)a.y * (double)a.y; }

__device__ __forceinline__ void sincos_half_turns(double x, double* s, double* c) { sincospi(x, s, c); }
__device__ __forceinline__ void sincos_half_turns(float x, float* s, float* c) { sincospif(x, s, c); }

// exp(2 pi i angle / 2^64). Sums of angles wrap as phases do, so they are exact; this is where the one rounding happens.
__device__ __forceinline__ amp_t unit(index_t angle) {
    index_t quadrant = (angle + (1ull << 61)) >> 62;
    long long rest = (long long)(angle - (quadrant << 62));  // in [-2^61, 2^61): at most an eighth of a turn
    real_t s, c;
    sincos_half_turns((real_t)rest * (real_t)1.0842021724855044e-19, &s, &c);  // 2^-63
    amp_t w;
    w.x = (quadrant & 1) ? -s : c;  // exact: a quarter turn exchanges and negates
    w.y = (quadrant & 1) ? c : s;
    if (quadrant & 2) {
        w.x = -w.x;
        w.y = -w.y;
    }
    return w;
}

// Streams past L1, which the programs and tables want for themselves.
__device__ __forceinline__ double2 load_amp(const double2* p) {
    double2 v;
    asm volatile("ld.global.L1::no_allocate.v2.f64 {%0, %1}, [%2];" : "=d"(v.x), "=d"(v.y) : "l"(p) : "memory");
    return v;
}
__device__ __forceinline__ float2 load_amp(const float2* p) {
    float2 v;
    asm volatile("ld.global.L1::no_allocate.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "l"(p) : "memory");
    return v;
}

// One amplitude from the state to an address of shared memory without passing through registers.
__device__ __forceinline__ void copy_async(unsigned shared_at, const double2* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_at), "l"(from) : "memory");
}
__device__ __forceinline__ void copy_async(unsigned shared_at, const float2* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_at), "l"(from) : "memory");
}
// Copies as above, but writes zeros where `nothing` holds: memory is not read then.
__device__ __forceinline__ void copy_async_unless(bool nothing, unsigned shared_at, const double2* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_at), "l"(from), "r"(nothing ? 0 : 16) : "memory");
}
__device__ __forceinline__ void copy_async_unless(bool nothing, unsigned shared_at, const float2* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_at), "l"(from), "r"(nothing ? 0 : 8) : "memory");
}
__device__ __forceinline__ unsigned shared_address(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }
__device__ __forceinline__ void copy_async(void* shared, const double2* from) { copy_async(shared_address(shared), from); }
__device__ __forceinline__ void copy_async(void* shared, const float2* from) { copy_async(shared_address(shared), from); }

__device__ __forceinline__ void wait_async() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Spreads the bits of `value` over the qubits outside the runs: opens a gap of `length` zero bits at each `start`, ascending.
struct Runs {
    unsigned count;
    unsigned char start[31];
    unsigned char length[32];
    unsigned char pad;
};
__device__ __forceinline__ index_t spread(index_t value, const Runs& runs) {
    for (unsigned i = 0; i < runs.count; ++i) {
        index_t low = (1ull << runs.start[i]) - 1;
        value = (value & low) | ((value & ~low) << runs.length[i]);
    }
    return value;
}
