// common/volatile_access.cuh -- global loads and stores that the compiler leaves in place, so that no value waits in a register.
// Source     PTX ISA, ld.global and st.global; volatile, so neither moved nor merged
#pragma once
#include "common/common.cuh"

__device__ __forceinline__ index_t load_volatile(const index_t* p) {
    index_t v;
    asm volatile("ld.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
__device__ __forceinline__ double2 load_volatile(const double2* p) {
    double2 v;
    asm volatile("ld.global.v2.f64 {%0, %1}, [%2];" : "=d"(v.x), "=d"(v.y) : "l"(p) : "memory");
    return v;
}
__device__ __forceinline__ float2 load_volatile(const float2* p) {
    float2 v;
    asm volatile("ld.global.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "l"(p) : "memory");
    return v;
}
// Of a number that became a pointer the compiler does not know that it is one to global memory.
__device__ __forceinline__ void store_volatile(double2* p, double2 v) {
    asm volatile("st.global.v2.f64 [%0], {%1, %2};" ::"l"(p), "d"(v.x), "d"(v.y) : "memory");
}
__device__ __forceinline__ void store_volatile(float2* p, float2 v) {
    asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(p), "f"(v.x), "f"(v.y) : "memory");
}
