// cpu/tuning.hpp -- sizes that fit one CPU's caches; other sizes give the same results within rounding.
//
// Source     best of whole circuits on an EPYC 9004 (Zen 4: 32 KiB and 1 MiB of first- and second-level cache a core), 2026-11.
//            Caches of other processors of these years are as large or larger.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qsim {

constexpr std::size_t kPrefetchBytes = std::size_t{24} << 20;  // larger states do not stay in a last-level cache
constexpr int kBlockBitsDouble = 10;    // log2 of a block's amplitudes: 16 KiB of complex128, half a first-level cache
constexpr int kStackTile = 13;          // positions of a stack's tile at most: two tiles of 128 KiB stay in a second-level cache
constexpr std::uint64_t kOzakiPanelAmps = 1 << 14;  // amplitudes of a panel of the emulated product, whose sums then take 512 KiB
constexpr int kPauliChunkBits = 10;     // log2 of a chunk's amplitudes: three buffers of 8 KiB stay in a first-level cache

}  // namespace qsim
