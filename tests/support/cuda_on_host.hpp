// What a kernel needs of CUDA, on the host: one block at a time, each thread a context that runs until it waits for others.
// Warps run in order and in reverse in turn, each as far as it comes without others, and its threads likewise between two
// barriers, so that what needs a barrier and has none goes wrong.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
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
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) int2 { int x, y; };
inline double2 make_double2(double x, double y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
struct Index { unsigned x; };
inline Index threadIdx, blockIdx, gridDim, blockDim;
alignas(1024) inline char shared[1 << 18];
inline unsigned __cvta_generic_to_shared(const void* p) { return unsigned((const char*)p - shared); }

// A number of threads that wait for each other.
struct Meeting {
    int members = 0, arrived = 0, round = 0;
};

struct Threads {
    std::vector<ucontext_t> contexts;
    std::vector<std::unique_ptr<char[]>> stacks;
    std::vector<bool> ended;
    ucontext_t scheduler;
    std::function<void()> kernel;
    Meeting block;
    std::vector<Meeting> warps;
};
inline Threads* threads_of_block;

inline void let_others_run() {
    const unsigned me = threadIdx.x;
    swapcontext(&threads_of_block->contexts[me], &threads_of_block->scheduler);
    threadIdx.x = me;
}
inline void meet(Meeting& meeting) {
    const int round = meeting.round;
    if (++meeting.arrived == meeting.members) meeting.arrived = 0, ++meeting.round;
    while (meeting.round == round) let_others_run();
}
inline void __syncthreads() { meet(threads_of_block->block); }
inline void __syncwarp() { meet(threads_of_block->warps[threadIdx.x / 32]); }
inline unsigned long long atomicAdd(unsigned long long* p, unsigned long long x) { return __atomic_fetch_add(p, x, __ATOMIC_RELAXED); }
template <class T> inline T atomicAdd(T* p, T x) { const T old = *p; *p += x; return old; }
inline unsigned long long atomicMax(unsigned long long* p, unsigned long long x) { const auto old = *p; *p = std::max(old, x); return old; }
template <class T> inline T __ldg(const T* p) { return *p; }
template <class T> inline T __ldcg(const T* p) { return *p; }
inline void __threadfence() {}
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ll2double_rn(long long x) { return (double)x; }
inline long long __double2ll_rn(double x) { return std::llrint(x); }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned out = 0;
    for (int j = 0; j < 4; ++j) out |= (unsigned)(both >> 8 * (selector >> 4 * j & 7) & 255) << 8 * j;
    return out;
}
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
inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
inline int __double2hiint(double x) { return int(bits_as<unsigned long long>(x) >> 32); }
inline int __double2loint(double x) { return int(bits_as<unsigned long long>(x)); }
inline double __hiloint2double(int hi, int lo) { return bits_as<double>((unsigned long long)(unsigned)hi << 32 | (unsigned)lo); }
inline float __int_as_float(int x) { return bits_as<float>(x); }
inline int __float_as_int(float x) { return bits_as<int>(x); }

// One warp's m16n8k16 product: lane 4 g + t holds a[i] = (A[g][4 i + t], A[g + 8][4 i + t]), b[i] = B[4 i + t][g] and the sums at
// rows g and g + 8, columns 2 t and 2 t + 1.
struct Warp {
    double a[16][16], b[16][8];
};
inline Warp warps[32];
inline void warp_mma(double (&c)[4], const double2 (&a)[4], const double (&b)[4]) {
    Warp& warp = warps[threadIdx.x / 32];
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < 4; ++i) warp.a[g][4 * i + t] = a[i].x, warp.a[g + 8][4 * i + t] = a[i].y, warp.b[4 * i + t][g] = b[i];
    __syncwarp();
    for (unsigned r = 0; r < 4; ++r)
        for (unsigned k = 0; k < 16; ++k) c[r] += warp.a[g + 8 * (r / 2)][k] * warp.b[k][2 * t + r % 2];
    __syncwarp();
}

// One warp's m16n8k8 product: lane 4 g + t holds A at (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4), B at (t, g) and (t + 4, g).
inline void warp_mma(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
    Warp& warp = warps[threadIdx.x / 32];
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < 4; ++i) warp.a[g + 8 * (i % 2)][t + 4 * (i / 2)] = a[i];
    for (unsigned i = 0; i < 2; ++i) warp.b[t + 4 * i][g] = b[i];
    __syncwarp();
    for (unsigned r = 0; r < 4; ++r)
        for (unsigned k = 0; k < 8; ++k) c[r] += warp.a[g + 8 * (r / 2)][k] * warp.b[k][2 * t + r % 2];
    __syncwarp();
}

// The same of TF32: of each operand's bits the lower 13 do not count, sums are floats.
inline void warp_mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    double exact[4] = {}, wide_a[4], wide_b[2];
    for (unsigned i = 0; i < 4; ++i) wide_a[i] = bits_as<float>(a[i] & 0xFFFFE000u);
    for (unsigned i = 0; i < 2; ++i) wide_b[i] = bits_as<float>(b[i] & 0xFFFFE000u);
    warp_mma(exact, wide_a, wide_b);
    for (unsigned r = 0; r < 4; ++r) c[r] += (float)exact[r];
}

// The value of another lane of the warp.
inline double warp_values[32][32];
inline double shuffle(double value, unsigned from) {
    double(&values)[32] = warp_values[threadIdx.x / 32];
    values[threadIdx.x % 32] = value;
    __syncwarp();
    const double found = values[from];
    __syncwarp();
    return found;
}
inline double __shfl_xor_sync(unsigned, double value, int mask) { return shuffle(value, threadIdx.x % 32 ^ mask); }
inline double __shfl_down_sync(unsigned, double value, int by) { return shuffle(value, threadIdx.x % 32 + (threadIdx.x % 32 + by < 32 ? by : 0)); }

template <class Kernel>
void launch(int blocks, int threads, Kernel kernel) {
    gridDim.x = blocks, blockDim.x = threads;
    for (int block = 0; block < blocks; ++block) {
        Threads all;
        threads_of_block = &all;
        all.contexts.resize(threads), all.ended.assign(threads, false), all.kernel = kernel;
        all.block.members = threads;
        for (int first = 0; first < threads; first += 32) all.warps.push_back({std::min(32, threads - first), 0, 0});
        blockIdx.x = block;
        for (auto& context : all.contexts) {
            constexpr std::size_t kStack = 1 << 17;
            all.stacks.emplace_back(new char[kStack]);
            getcontext(&context);
            context.uc_stack.ss_sp = all.stacks.back().get(), context.uc_stack.ss_size = kStack, context.uc_link = &all.scheduler;
            makecontext(&context, +[] {
                const unsigned me = threadIdx.x;
                threads_of_block->kernel();
                threads_of_block->ended[me] = true;
            }, 0);
        }
        const int num_warps = (int)all.warps.size();
        int left = threads;
        for (bool forward = true; left > 0; forward = !forward)
            for (int number = 0; number < num_warps; ++number) {
                const int warp = forward ? number : num_warps - 1 - number, members = all.warps[warp].members;
                for (int round = -1; round != all.warps[warp].round;) {  // as far as it comes without others
                    round = all.warps[warp].round;
                    for (int lane = 0; lane < members; ++lane) {
                        const int t = 32 * warp + (forward ? lane : members - 1 - lane);
                        if (all.ended[t]) continue;
                        threadIdx.x = t;
                        swapcontext(&all.scheduler, &all.contexts[t]);
                        left -= all.ended[t];
                    }
                }
            }
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
