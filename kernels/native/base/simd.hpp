// base/simd.hpp -- one vector register as a type, written with the compiler's vector extensions: the same source is compiled
// for AVX-512, AVX2 and the baseline (SSE2, NEON). Only pointers and plain types here: a library template instantiated
// with these compiler flags could be picked by the linker for code that must run on any machine.
#pragma once

#include <cstdint>
#include <utility>

#ifndef QSIM_VECTOR_BYTES
#error "QSIM_VECTOR_BYTES is the width of a vector register of this instruction set"
#endif

namespace qsim {
namespace QSIM_ISA {

template <class Real>
struct Simd;
template <>
struct Simd<double> {
    typedef double Vec __attribute__((vector_size(QSIM_VECTOR_BYTES), may_alias));
    typedef std::int64_t Mask __attribute__((vector_size(QSIM_VECTOR_BYTES)));
    typedef std::int64_t Int;
};
template <>
struct Simd<float> {
    typedef float Vec __attribute__((vector_size(QSIM_VECTOR_BYTES), may_alias));
    typedef std::int32_t Mask __attribute__((vector_size(QSIM_VECTOR_BYTES)));
    typedef std::int32_t Int;
};

template <class Real>
constexpr int kLanes = QSIM_VECTOR_BYTES / static_cast<int>(sizeof(Real));

#define QSIM_INLINE static inline __attribute__((always_inline))

template <class Vec, int... kIndex>
QSIM_INLINE Vec pick(Vec a, Vec b, std::integer_sequence<int, kIndex...>) {
    return __builtin_shufflevector(a, b, kIndex...);
}

// Index sequences made from a function of the lane number.
template <class F, int... kLane>
constexpr auto map_lanes(std::integer_sequence<int, kLane...>) {
    return std::integer_sequence<int, F::at(kLane)...>{};
}
template <class F, int kCount>
using Lanes = decltype(map_lanes<F>(std::make_integer_sequence<int, kCount>{}));

struct EvenLane { static constexpr int at(int lane) { return 2 * lane; } };
struct OddLane { static constexpr int at(int lane) { return 2 * lane + 1; } };
template <int kCount> struct LowInterleave { static constexpr int at(int i) { return i / 2 + (i % 2) * kCount; } };
template <int kCount> struct HighInterleave { static constexpr int at(int i) { return kCount / 2 + i / 2 + (i % 2) * kCount; } };
template <int kBit> struct FlipLane { static constexpr int at(int lane) { return lane ^ (1 << kBit); } };
template <int kBit, int kCount> struct ExchangeLow {  // lane bit 0: own; lane bit 1: partner's lane with bit 0
    static constexpr int at(int lane) { return (lane >> kBit) & 1 ? kCount + (lane ^ (1 << kBit)) : lane; }
};
template <int kBit, int kCount> struct ExchangeHigh {
    static constexpr int at(int lane) { return (lane >> kBit) & 1 ? kCount + lane : lane | (1 << kBit); }
};

template <class Real>
QSIM_INLINE typename Simd<Real>::Vec load(const Real* from) {
    return *reinterpret_cast<const typename Simd<Real>::Vec*>(from);
}
template <class Real>
QSIM_INLINE void store(Real* to, typename Simd<Real>::Vec value) {
    *reinterpret_cast<typename Simd<Real>::Vec*>(to) = value;
}
template <class Real>
QSIM_INLINE typename Simd<Real>::Vec broadcast(Real value) {
    return value - typename Simd<Real>::Vec{};
}

// Keeps a value that is used several times in a register: compilers may otherwise read it from memory each time.
template <class Vec>
QSIM_INLINE void pin(Vec& value) {
#if defined(__AVX512F__)
    asm("" : "+v"(value));
#elif defined(__AVX__)
    asm("" : "+x"(value));
#else
    (void)value;
#endif
}

// One-qubit rotations whose vectors fit the register file at once.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kMaxRotations = 3;
#else
constexpr int kMaxRotations = 2;
#endif

// lane l <- lane l ^ (1 << kBit)
template <class Real, int kBit>
QSIM_INLINE typename Simd<Real>::Vec flip_lanes(typename Simd<Real>::Vec v) {
    return pick(v, v, Lanes<FlipLane<kBit>, kLanes<Real>>{});
}

}  // namespace QSIM_ISA
}  // namespace qsim
