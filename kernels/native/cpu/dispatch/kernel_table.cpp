// cpu/dispatch/kernel_table.cpp -- chooses an instruction set once, by the processor's flags and QSIM_OZAKI_ISA.
#include "cpu/dispatch/kernel_table.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace qsim {

namespace {

const TileKernels& choose_kernels() {
    const char* wanted = std::getenv("QSIM_OZAKI_ISA");
    const std::string name = wanted ? wanted : "";
    if (name == "portable") return kernels_portable;
#ifdef QSIM_X86
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    if (avx512 && (name.empty() || name == "avx512")) return kernels_avx512;
    if (avx2 && (name.empty() || name == "avx2")) return kernels_avx2;
#endif
    if (!name.empty())
        throw std::runtime_error("QSIM_OZAKI_ISA=" + name + " is not available here; use portable, avx2 or avx512, or unset it");
    return kernels_portable;
}

}  // namespace

const TileKernels& tile_kernels() {
    static const TileKernels& kernels = choose_kernels();
    return kernels;
}

const OzakiKernels& ozaki_kernels() {
    static const OzakiKernels& kernels = []() -> const OzakiKernels& {
#ifdef QSIM_X86
        const std::string name = tile_kernels().name;
        if (name == "avx512" && __builtin_cpu_supports("avx512vnni")) return ozaki_kernels_vnni;
        if (name != "portable") return ozaki_kernels_avx2;
#endif
        return ozaki_kernels_portable;
    }();
    return kernels;
}

int lane_bits(bool single) {
    int lanes = single ? tile_kernels().lanes_single : tile_kernels().lanes_double, bits = 0;
    while (lanes >>= 1) ++bits;
    return bits;
}

}  // namespace qsim
