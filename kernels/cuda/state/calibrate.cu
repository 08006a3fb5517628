// state/calibrate.cu -- the rate of INT8 tensor-core products, which the planner divides by.
// Arrays     sink: never written in practice, keeps the compiler honest
// Launch     any grid of whole warps; operations = warps * iterations * 8 * 8192
// Work       registers only
// Exactness  results are discarded
extern "C" __global__ void __launch_bounds__(256) rate_int8(int* sink, int iterations, int seed) {
    int a[4], b[2], c[8][4] = {};
    for (int i = 0; i < 4; ++i) a[i] = seed * (2 * i + 3) ^ (int)threadIdx.x * 0x45D9F3B;
    for (int i = 0; i < 2; ++i) b[i] = a[i] * 11 + 5;
    for (int i = 0; i < iterations; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j)
            asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                         : "+r"(c[j][0]), "+r"(c[j][1]), "+r"(c[j][2]), "+r"(c[j][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    int sum = 0;
    for (auto& row : c)
        for (int v : row) sum += v;
    if (sum == 123456789) *sink = sum;
}
