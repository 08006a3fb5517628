// cpu/tile/program.hpp -- the sweeps of a tile pass, as plain data that the kernels read.
//
// A tile holds the 2^T amplitudes whose qubits outside the tile have fixed values. Inside, amplitude i lies in vector
// i / W, lane i % W (W = amplitudes a vector register holds), stored as W real parts, then W imaginary parts.
// A position is a bit of the tile index: below log2(W) a lane bit, else a vertical bit (a bit of the vector number).
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "base/aligned.hpp"
#include "base/bits.hpp"
#include "cpu/state/pages.hpp"

namespace qsim {

constexpr int kMaxTile = 20;     // positions of a tile
constexpr int kMaxOpQubits = 20;  // targets of one operator that mixes them
constexpr int kMaxDiagonal = 32;  // targets of one diagonal
constexpr std::size_t kMaxParity = 64;  // targets of one parity
constexpr int kMaxParities = 4;  // parities of one sweep: 2^4 patterns of factors stay in the first-level cache
constexpr int kPhaseLow = 6;     // positions below this one make the low part of a phase table
constexpr int kMaxVariants = 3;  // high positions that may choose among low phase tables
constexpr int kGroupPhases = 8;  // phase sweeps that share one run over first-level blocks

enum class SweepType : std::uint8_t {
    kRotation,   // up to max_rotations uncontrolled one-qubit rotations on vertical positions, scale deferred
    kLaneReal,   // one-qubit real (or imaginary off-diagonal) matrices on lane positions
    kLaneDense,  // one complex 2x2 on a lane position
    kDense,      // 2^k x 2^k complex matrix on vertical positions
    kDenseAny,   // the same on any positions, for tiles with too few vertical ones
    kPermute,    // 2^k permutation with phases on vertical positions
    kPhase,      // product of diagonals over any qubits
    kParity,     // factors by the parities of many qubits
    kPauli,      // rotations about Pauli strings of one direction
    kSwapLane,   // exchanges a lane position with a vertical one
    kGather      // amplitude i comes from amplitude index[i] of the tile
};

// Everything an amplitude index must satisfy for a controlled sweep.
struct Controls {
    index_t outer_mask = 0, outer_value = 0;        // state index bits outside the tile
    std::uint32_t vertical_mask = 0, vertical_value = 0;  // bits of the vector number
    std::uint32_t lane_mask = 0, lane_value = 0;    // bits of the lane number
};

// A diagonal that depends on qubits outside the tile; its factors are selected once per tile. Of a parity outer_mask alone:
// its qubits outside; the first one of a sweep has the pattern of each vector of the tile from inner_index on, and outer_value is
// the direction of a rotation, as positions.
struct PhaseTerm {
    index_t outer_mask = 0, outer_value = 0;  // controls outside the tile
    std::uint8_t num_outer = 0, num_inner = 0;
    std::uint8_t outer[kMaxDiagonal];  // state qubits: the high bits of the table index
    std::uint8_t inner[kMaxTile];      // positions, the low bits of the table index
    std::uint32_t table = 0;           // first factor, in complex numbers
    std::uint32_t inner_index = 0;     // slow terms: first entry of the 2^T index table, else unused
};

struct Phase {
    std::uint32_t low = 0;       // 2^variants low tables, each 2^low_bits factors in vector layout
    std::uint32_t high = 0;      // 2^(T - low_bits) factors, re and im interleaved
    std::uint32_t full = 0;      // 2^T factors in vector layout, where has_full
    bool has_full = false;
    std::uint8_t num_variants = 0;
    std::uint8_t variant[kMaxVariants] = {};  // high positions (counted from low_bits) that choose the low table
    std::uint32_t scalar_begin = 0, scalar_end = 0;  // terms with no position in the tile
    std::uint32_t linear_begin = 0, linear_end = 0;  // terms with one position
    std::uint32_t part_begin = 0, part_end = 0;      // terms with several positions, all low or all high
    std::uint32_t slow_begin = 0, slow_end = 0;      // any other
};

struct Sweep {
    SweepType type;
    std::uint8_t num_targets = 0;
    std::uint8_t targets[kMaxOpQubits] = {};  // vertical bits (position - lane bits), or the lane bit of a lane sweep
    std::uint8_t flags = 0;    // kRotation: bit j reflection of target j, bit 7 imaginary; kLaneReal: lane mask, bit 7 imaginary; kPauli: imaginary
    std::uint8_t flip = 0;     // kRotation: bit j reads target j inverted; kLaneReal: own entries are 1; kPermute: phases are 1
    bool local = false;        // touches one block of 2^block_bits amplitudes at a time
    std::uint32_t data = 0;    // first number of the sweep in `data` (or `indices`)
    std::uint32_t phase = 0;   // kPhase: which; kParity, kPauli: first term
    Controls controls;
};

template <class Real>
struct TileProgram {
    int num_qubits = 0;   // of the padded state
    int num_tile = 0;     // T
    int lane_bits = 0;    // log2(W)
    int low_bits = 0;     // positions of the low part of a phase table
    int block_bits = 0;   // amplitudes of a first-level cache block
    int max_dense = 0;    // most targets of a dense or permute sweep
    std::complex<double> scale = 1;  // applied at the scatter
    std::vector<int> outer;              // qubits outside the tile that may read 0 or 1, ascending
    index_t fixed = 0;                   // qubits outside the tile that read 1 wherever an amplitude is not zero
    std::vector<std::uint8_t> tile;      // qubit at each position at the gather
    std::vector<Sweep> sweeps;
    std::vector<Phase> phases;
    std::vector<PhaseTerm> terms;
    AlignedVector<Real> data;
    AlignedVector<Real> tables;            // phase tables
    std::vector<std::uint32_t> indices;
    std::vector<index_t> gather, scatter;  // state offset of each half vector (W/2 amplitudes), in amplitudes
};

// A TileProgram as pointers, for kernels that must not instantiate library templates.
template <class Real>
struct TileView {
    int num_tile, lane_bits, low_bits, block_bits;
    double scale_re, scale_im;
    const int* outer;
    int num_outer;
    index_t fixed;
    const Sweep* sweeps;
    int num_sweeps;
    const Phase* phases;
    const PhaseTerm* terms;
    const Real* data;
    const Real* tables;
    const std::uint32_t* indices;
    const index_t* gather;
    const index_t* scatter;
    PageView pages;                // of the state
    int page_bits;                 // log2 of the amplitudes of a page
    const index_t* tile_pages;     // numbers of the pages a tile touches, beside that of its base
    int num_tile_pages;
    bool prefetch;  // ask for the next tile while this one is read: the state does not fit the caches
};

// Numbers one phase needs for the tables of a tile: low variants, then high; a multiple of any vector register.
inline index_t phase_room(int num_tile, int low_bits) {
    return ((index_t{2} << kMaxVariants << low_bits) + (index_t{2} << (num_tile - low_bits)) + 31) / 32 * 32;
}

}  // namespace qsim
