"""Energy and rate of single activities of a GPU: what a tile pass is made of, one kernel each.

usage: energy.py [SECONDS]   (of each activity, 2 if not given)

Energy is NVML's counter over runs one after another, less what the idle card takes; the clock is that of the last run.
The counter is coarse: half a second is too short to tell activities apart that differ by a third.
"""

import ctypes
import sys
import time
from dataclasses import dataclass, field

import cupy as cp
import numpy as np

THREADS, BLOCKS_PER_PROCESSOR = 256, 2
RUN_SECONDS = 0.05
FRAME = """
__device__ __forceinline__ unsigned long long nanoseconds() {
    unsigned long long t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); return t;
}
extern "C" __global__ __launch_bounds__(256, 2)
void activity(double* out, const double* in, double* clock_ghz, int turns, double* state) {
    extern __shared__ double2 shared[];
    (void)shared;
    SETUP
    const unsigned long long begin = nanoseconds();
    const long long cycles = clock64();
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) { BODY }
    if (threadIdx.x == 0 && blockIdx.x == 0) *clock_ghz = double(clock64() - cycles) / double(nanoseconds() - begin);
    out[threadIdx.x + 256 * blockIdx.x] = RESULT;
}
"""
SCALARS = (
    "".join(f"double x{r} = in[threadIdx.x + 256 * {r}];" for r in range(16)) + "const double z = 0.7, zi = 1 / z;"
)
SUM = " + ".join(f"x{r}" for r in range(16))
AMPS = """
double2 a[16];
for (int i = 0; i < 16; ++i) a[i] = {in[threadIdx.x + 256 * i], in[threadIdx.x + 256 * i + 1]};
"""
AMPS_SUM = " + ".join(f"a[{i}].x + a[{i}].y" for i in range(16))
PRODUCT = """
for (int j = 0; j < 4; ++j) {
    double c[4] = {};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[2 * j].x), "d"(a[2 * j + 1].x), "d"(a[2 * j].y), "d"(a[2 * j + 1].y), "d"(b0), "d"(b1));
    a[2 * j] = {c[0], c[1]};
    a[2 * j + 1] = {c[2], c[3]};
}
"""
ROTATION = """
const int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
const double b0 = state[8 * t + g], b1 = state[8 * (t + 4) + g];
"""
EXCHANGE = """
for (int i = 0; i < 16; ++i) shared[threadIdx.x + 256 * i] = a[i];
__syncthreads();
for (int i = 0; i < 16; ++i) a[i] = shared[(threadIdx.x ^ 1) + 256 * ((i + 1) & 15)];
__syncthreads();
"""
SHUFFLES = """
for (int i = 0; i < 16; ++i) a[i] = {__shfl_xor_sync(~0u, a[i].x, 1), __shfl_xor_sync(~0u, a[i].y, 2)};
"""
COPY = """
const size_t step = 256ull * gridDim.x, amps = 1ull << 29;
double2* amp = reinterpret_cast<double2*>(state);
for (size_t i = blockIdx.x * 256ull + threadIdx.x; i < amps; i += step) amp[i] = {-amp[i].x, -amp[i].y};
"""


def shears(form, count=512):
    """``count`` dependent rotations' halves of 16 values, or sums, or products: values stay as large as they are."""
    lines = []
    for i in range(count):
        r = i % 16
        other, sign = r ^ 1 << i // 16 % 4, "" if i // 16 % 2 else "-"
        lines.append(
            {
                "fma": f"x{r} = fma({'' if r < other else '-'}x{other}, z, x{r});",
                "add": f"x{r} = x{r} + {sign}y{other};",
                "multiply": f"x{r} = x{r} * {'zi' if sign else 'z'};",
            }[form]
        )
    return " ".join(lines)


@dataclass(frozen=True)
class Activity:
    """One kernel.

    Attributes:
        unit: what is counted.
        count: of it, a thread and turn.
        setup, body, result: its text.
        shared: bytes of a block.
        data: the last argument, NumPy or CuPy.
    """

    unit: str
    count: float
    setup: str
    body: str
    result: str
    shared: int = 0
    data: object = field(default_factory=lambda: np.zeros(1))


def activities(lanes):
    """All of them; ``lanes``: threads of a launch."""
    others = "".join(f"const double y{r} = in[threadIdx.x + 256 * {r} + 4096] * 1e-3;" for r in range(16))
    rotation = np.ascontiguousarray(np.linalg.qr(np.random.default_rng(3).normal(size=(8, 8)))[0])
    state = cp.random.standard_normal(1 << 30)
    yield "FMA", Activity("instruction x lane", 512, SCALARS, shears("fma"), SUM)
    yield "addition", Activity("instruction x lane", 512, SCALARS + others, shears("add"), SUM)
    yield "multiplication", Activity("instruction x lane", 512, SCALARS, shears("multiply"), SUM)
    yield "tensor core m16n8k8", Activity("multiply-add", 128, AMPS + ROTATION, PRODUCT, AMPS_SUM, 0, rotation)
    yield "exchange", Activity("amplitude stored and loaded", 16, AMPS, EXCHANGE, AMPS_SUM, 1 << 16)
    yield "shuffle", Activity("32 bits of a lane", 64, AMPS, SHUFFLES, AMPS_SUM)
    yield "pass over memory", Activity("amplitude read and written", 2.0**29 / lanes, "", COPY, "0", 0, state)


class Meter:
    """NVML's energy counter of the first GPU."""

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        self._checked(self.library.nvmlInit_v2())
        self._checked(self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)))

    def joules(self):
        """Since the driver was loaded."""
        value = ctypes.c_ulonglong()
        self._checked(self.library.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(value)))
        return 1e-3 * value.value

    def _checked(self, status):
        if status:
            raise RuntimeError(f"NVML answers {status}")


def main():
    """Prints a line an activity."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    meter, wait = Meter(), cp.cuda.Device().synchronize
    start, joules = time.perf_counter(), meter.joules()
    time.sleep(1)
    idle = (meter.joules() - joules) / (time.perf_counter() - start)
    print(f"idle: {idle:.0f} W", flush=True)
    blocks = BLOCKS_PER_PROCESSOR * cp.cuda.Device().attributes["MultiProcessorCount"]
    out, inputs, ghz = cp.zeros(blocks * THREADS), cp.random.standard_normal(1 << 14), cp.zeros(1)
    for name, activity in activities(blocks * THREADS):
        text = FRAME.replace("SETUP", activity.setup).replace("BODY", activity.body).replace("RESULT", activity.result)
        function = cp.RawModule(code=text, backend="nvrtc", options=("-std=c++17",)).get_function("activity")
        if activity.shared:
            function.max_dynamic_shared_size_bytes = activity.shared
        data = cp.asarray(activity.data)

        def run(turns, function=function, data=data, shared=activity.shared):
            function((blocks,), (THREADS,), (out, inputs, ghz, np.int32(turns), data), shared_mem=shared)

        run(1)
        wait()
        start = time.perf_counter()
        run(4)
        wait()
        turns = max(int(4 * RUN_SECONDS / (time.perf_counter() - start)), 1)
        for _ in range(4):
            run(turns)
        wait()
        start, joules, runs = time.perf_counter(), meter.joules(), max(int(seconds / RUN_SECONDS), 1)
        for _ in range(runs):
            run(turns)
        wait()
        took = time.perf_counter() - start
        net = meter.joules() - joules - idle * took
        done = activity.count * blocks * THREADS * turns * runs
        print(
            f"{name}: {1e12 * net / done:.1f} pJ above idle a {activity.unit}, {done / took / 1e12:.3g} T/s, "
            f"{net / took + idle:.0f} W, {1e3 * float(ghz[0]):.0f} MHz",
            flush=True,
        )


if __name__ == "__main__":
    main()
