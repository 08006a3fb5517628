// What tile and stack kernels need of CUDA, on the host: one block at a time, one std::thread per thread.
#pragma once
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)

struct alignas(16) double2 { double x, y; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
struct Index { unsigned x; };
inline thread_local Index threadIdx, blockIdx;
inline Index gridDim;
inline std::barrier<>* block_barrier;
alignas(16) inline char shared[1 << 18];

inline void __syncthreads() { block_barrier->arrive_and_wait(); }
inline unsigned long long atomicAdd(unsigned long long* p, unsigned long long x) { return __atomic_fetch_add(p, x, __ATOMIC_RELAXED); }
template <class T> inline T __ldg(const T* p) { return *p; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline void sincospi(double x, double* s, double* c) { *s = std::sin(M_PI * x), *c = std::cos(M_PI * x); }
inline void sincospif(float x, float* s, float* c) { *s = std::sin(float(M_PI) * x), *c = std::cos(float(M_PI) * x); }
template <class To, class From> inline To bits_as(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To out;
    std::memcpy(&out, &x, sizeof x);
    return out;
}
inline int __double2hiint(double x) { return int(bits_as<unsigned long long>(x) >> 32); }
inline int __double2loint(double x) { return int(bits_as<unsigned long long>(x)); }
inline double __hiloint2double(int hi, int lo) { return bits_as<double>((unsigned long long)(unsigned)hi << 32 | (unsigned)lo); }
inline float __int_as_float(int x) { return bits_as<float>(x); }
inline int __float_as_int(float x) { return bits_as<int>(x); }

// One warp's m16n8k16 product: lane 4 g + t holds a[i] = (A[g][4 i + t], A[g + 8][4 i + t]), b[i] = B[4 i + t][g] and the sums at
// rows g and g + 8, columns 2 t and 2 t + 1.
struct Warp {
    double a[16][16], b[16][8];
    std::barrier<> together{32};
};
inline Warp* warps;
inline void warp_mma(double (&c)[4], const double2 (&a)[4], const double (&b)[4]) {
    Warp& warp = warps[threadIdx.x / 32];
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < 4; ++i) warp.a[g][4 * i + t] = a[i].x, warp.a[g + 8][4 * i + t] = a[i].y, warp.b[4 * i + t][g] = b[i];
    warp.together.arrive_and_wait();
    for (unsigned r = 0; r < 4; ++r)
        for (unsigned k = 0; k < 16; ++k) c[r] += warp.a[g + 8 * (r / 2)][k] * warp.b[k][2 * t + r % 2];
    warp.together.arrive_and_wait();
}

template <class Kernel>
void launch(int blocks, int threads, Kernel kernel) {
    gridDim.x = blocks;
    for (int block = 0; block < blocks; ++block) {
        std::barrier<> barrier(threads);
        block_barrier = &barrier;
        std::vector<std::thread> running;
        for (int t = 0; t < threads; ++t)
            running.emplace_back([=] {
                threadIdx.x = t, blockIdx.x = block;
                kernel();
            });
        for (auto& thread : running) thread.join();
    }
}

// The file `name` as an array.
template <class T> std::vector<T> read(const char* name) {
    std::FILE* file = std::fopen(name, "rb");
    std::fseek(file, 0, SEEK_END);
    std::vector<T> out((std::ftell(file) + sizeof(T) - 1) / sizeof(T));
    std::rewind(file);
    if (std::fread(out.data(), 1, out.size() * sizeof(T), file) == 0) return {};
    std::fclose(file);
    return out;
}
