// common/ptx.cuh -- kernels/cuda/common/ptx.cuh on a host: lanes of a warp meet, and each computes its share as the PTX ISA says.
// A copy arrives when its group is waited for and not before: a wait too few reads old bytes.
#pragma once
#include <vector>

struct Lane {  // what a lane shows the others of its warp
    const unsigned* a;
    unsigned b0, b1, address;
};
inline Lane lanes[32][2][32];  // by warp and turn: who is one turn ahead writes to the other set
inline unsigned turns[1024];

inline Lane* show(const Lane& mine) {
    const unsigned me = threadIdx.x, turn = turns[me]++ & 1;
    lanes[me / 32][turn][me % 32] = mine;
    __syncwarp();
    return lanes[me / 32][turn];
}

inline int dp4a_us(unsigned a, int b, int c) {
    for (int j = 0; j < 4; ++j) c += int(a >> 8 * j & 255) * int((signed char)(b >> 8 * j));
    return c;
}
inline int dot(unsigned a, unsigned b, int c) {
    for (int j = 0; j < 4; ++j) c += int((signed char)(a >> 8 * j)) * int((signed char)(b >> 8 * j));
    return c;
}

template <class Dot>
inline void mma_by(int (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, Dot dot) {
    const unsigned kept[4] = {a[0], a[1], a[2], a[3]};
    const Lane* all = show({kept, b0, b1, 0});
    const int lane = threadIdx.x % 32;
    int sums[4];
    for (int e = 0; e < 4; ++e) {
        const int row = lane / 4, column = lane % 4 * 2 + e % 2, half = e / 2;
        sums[e] = c[e];
        for (int quarter = 0; quarter < 4; ++quarter) {
            const Lane &left = all[row * 4 + quarter], &right = all[column * 4 + quarter];
            sums[e] = dot(left.a[half + 2], right.b1, dot(left.a[half], right.b0, sums[e]));
        }
    }
    __syncwarp();  // others have read `kept`
    for (int e = 0; e < 4; ++e) c[e] = sums[e];
}
inline void mma(int (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) { mma_by(c, a, b0, b1, dot); }
inline void mma_bytes(int (&d)[4], const unsigned (&a)[4], int b0, int b1, const int (&c)[4]) {
    std::copy(c, c + 4, d);
    mma_by(d, a, (unsigned)b0, (unsigned)b1, dp4a_us);
}

inline unsigned to_tf32(float value) { return ((unsigned)__float_as_int(value) + 0x1000u) & ~0x1FFFu; }
inline void mma_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    const unsigned kept[4] = {a[0], a[1], a[2], a[3]};
    const Lane* all = show({kept, b0, b1, 0});
    const int lane = threadIdx.x % 32;
    float sums[4];
    for (int e = 0; e < 4; ++e) {
        const int row = lane / 4, column = lane % 4 * 2 + e % 2, half = e / 2;
        sums[e] = c[e];
        for (int k = 0; k < 8; ++k) {
            const Lane &left = all[row * 4 + k % 4], &right = all[column * 4 + k % 4];
            sums[e] += __int_as_float(left.a[half + (k < 4 ? 0 : 2)]) * __int_as_float(k < 4 ? right.b0 : right.b1);
        }
    }
    __syncwarp();  // others have read `kept`
    for (int e = 0; e < 4; ++e) c[e] = sums[e];
}

inline void load_matrices(unsigned (&r)[4], unsigned address) {
    const Lane* all = show({nullptr, 0, 0, address});
    const int lane = threadIdx.x % 32;
    for (int m = 0; m < 4; ++m) std::memcpy(&r[m], shared + (int)all[8 * m + lane / 4].address + 4 * (lane % 4), 4);
}

struct Copy {
    unsigned to;
    const void* from;
    int bytes;
};
inline std::vector<std::vector<Copy>> copies[1024];  // of each thread: its groups, the last one open
inline void copy_later(unsigned to, const void* from, int bytes) {
    auto& groups = copies[threadIdx.x];
    if (groups.empty()) groups.emplace_back();
    groups.back().push_back({to, from, bytes});
}
inline void copy_line(unsigned to, const signed char* from) { copy_later(to, from, 16); }
inline void copy_word(unsigned to, const signed char* from) { copy_later(to, from, 4); }
template <class T>
inline void copy_async(T* to, const T* from) { copy_later(__cvta_generic_to_shared(to), from, sizeof *from); }
template <class T, class U>
inline void copy_async(T* to, const U* from) { copy_later(__cvta_generic_to_shared(to), from, sizeof *from); }
inline void commit_copies() { copies[threadIdx.x].emplace_back(); }
template <int kNewer>
inline void wait_copies() {
    auto& groups = copies[threadIdx.x];
    while ((int)groups.size() > kNewer + 1) {
        for (const Copy& copy : groups.front()) std::memcpy(shared + (int)copy.to, copy.from, copy.bytes);
        groups.erase(groups.begin());
    }
}
inline void wait_async() {
    commit_copies();
    wait_copies<0>();
}
