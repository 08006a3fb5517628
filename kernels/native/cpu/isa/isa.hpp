// cpu/isa/isa.hpp -- the tile loop: gather, sweeps, scatter. Included once per instruction set, which defines QSIM_ISA and
// QSIM_VECTOR_BYTES.
#include "cpu/dispatch/kernel_table.hpp"
#include "cpu/stack/dense.hpp"
#include "cpu/stack/overlap.hpp"
#include "cpu/tile/dense.hpp"
#include "cpu/tile/move.hpp"
#include "cpu/tile/parity.hpp"
#include "cpu/tile/pauli.hpp"
#include "cpu/tile/permute.hpp"
#include "cpu/tile/phase.hpp"
#include "cpu/tile/rotate.hpp"

namespace qsim {
namespace QSIM_ISA {

// Does `sweep` on 2^vector_bits vectors from `first` on (of the tile).
template <class Real>
static void apply_sweep(const TileView<Real>& view, const Sweep& sweep, index_t base, const PhaseTables<Real>& tables,
                        Real* tile, index_t first, int vector_bits, Real* scratch) {
    constexpr int W = kLanes<Real>;
    if ((base & sweep.controls.outer_mask) != sweep.controls.outer_value) return;
    Real* block = tile + 2 * W * first;
    if (sweep.type == SweepType::kPhase) {
        const Phase& phase = view.phases[sweep.phase];
        if (phase.has_full) apply_phase<Real, true>(view, phase, tables, block, first, vector_bits);
        else apply_phase<Real, false>(view, phase, tables, block, first, vector_bits);
        return;
    }
    if (sweep.type == SweepType::kParity) return sweep_parity(view, sweep, base, block, first, vector_bits);
    if (sweep.type == SweepType::kPauli) return sweep_pauli(view, sweep, base, block, first, vector_bits);
    Sweep inside = sweep;
    if (sweep.controls.vertical_mask && sweep.type != SweepType::kDenseAny) {  // controls above the block are constant in it
        const std::uint32_t below = static_cast<std::uint32_t>((index_t{1} << vector_bits) - 1);
        if ((first ^ sweep.controls.vertical_value) & sweep.controls.vertical_mask & ~below) return;
        inside.controls.vertical_mask &= below;
        inside.controls.vertical_value &= below;
    }
    const Real* data = view.data + sweep.data;
    switch (sweep.type) {
        case SweepType::kRotation: return sweep_rotation(inside, data, block, vector_bits);
        case SweepType::kLaneReal: return sweep_lane_real(inside, data, block, vector_bits);
        case SweepType::kLaneDense:
            return for_lane_bit<Real, 0>(inside.targets[0], [&](auto bit) {
                lane_dense<Real, decltype(bit)::value>(inside, data, block, vector_bits);
            });
        case SweepType::kDense: return sweep_dense(inside, data, block, vector_bits, scratch);
        case SweepType::kDenseAny: return sweep_dense_any(inside, data, block, vector_bits + view.lane_bits, scratch);
        case SweepType::kPermute:
            return sweep_permute(inside, data, view.indices + sweep.phase, block, vector_bits, scratch);
        case SweepType::kSwapLane:
            return for_lane_bit<Real, 0>(inside.flip, [&](auto bit) {
                swap_lane<Real, decltype(bit)::value, W>(inside, block, vector_bits);
            });
        case SweepType::kGather: return sweep_gather(inside, data, view.indices + sweep.phase, block, vector_bits, scratch);
        default: return;
    }
}

template <class Real>
static void run_sweeps(const TileView<Real>& view, index_t base, Real* tile, Real* phase_scratch, Real* scratch) {
    const int vector_bits = view.num_tile - view.lane_bits;
    const int block_vector_bits = view.block_bits - view.lane_bits;
    const index_t room = phase_room(view.num_tile, view.low_bits);
    PhaseTables<Real> tables[kGroupPhases];
    for (int begin = 0, end; begin < view.num_sweeps; begin = end) {
        // a run of sweeps that stay inside first-level blocks, or one sweep over the whole tile
        int phases = 0;
        for (end = begin; end < view.num_sweeps && (end == begin || (view.sweeps[begin].local && view.sweeps[end].local)); ++end) {
            if (view.sweeps[end].type != SweepType::kPhase) continue;
            if (phases == kGroupPhases) break;
            tables[phases] = prepare_phase(view, view.phases[view.sweeps[end].phase], base, phase_scratch + phases * room);
            ++phases;
        }
        const bool local = view.sweeps[begin].local && block_vector_bits < vector_bits;
        const int bits = local ? block_vector_bits : vector_bits;
        for (index_t first = 0; first < index_t{1} << vector_bits; first += index_t{1} << bits)
            for (int k = begin, phase = 0; k < end; ++k) {
                const bool is_phase = view.sweeps[k].type == SweepType::kPhase;
                apply_sweep(view, view.sweeps[k], base, tables[is_phase ? phase : 0], tile, first, bits, scratch);
                phase += is_phase;
            }
        for (int k = begin; k < end; ++k)
            if (view.sweeps[k].type == SweepType::kPhase)
                apply_slow_terms(view, view.phases[view.sweeps[k].phase], base, tile);
    }
}

// Makes the pages of a tile readable; false where none of them is in use, so that the tile holds zeros.
template <class Real>
static bool open_pages(const TileView<Real>& view, index_t base) {
    bool any = false;
    for (int k = 0; k < view.num_tile_pages && !any; ++k) any = view.pages.in_use(base >> view.page_bits | view.tile_pages[k]);
    if (any && view.pages.recycled)
        for (int k = 0; k < view.num_tile_pages; ++k) view.pages.open(base >> view.page_bits | view.tile_pages[k]);
    return any;
}

// scratch: the tile, the tables of kGroupPhases phases, then room for copies (cpu/tile/run.cpp sizes it).
template <class Real>
static void run_tiles(const TileView<Real>& view, Real* state, index_t begin, index_t end, Real* scratch) {
    Real* tile = scratch;
    Real* phase_scratch = tile + (index_t{2} << view.num_tile);
    const index_t room = phase_room(view.num_tile, view.low_bits);
    Real* copies = phase_scratch + kGroupPhases * room;
    for (index_t number = begin; number < end; ++number) {
        const index_t base = deposit(number, view.outer, view.num_outer) | view.fixed;
        const index_t next = number + 1 < end ? deposit(number + 1, view.outer, view.num_outer) | view.fixed : base;
        // exact: every operator maps zero to zero
        if (view.num_tile_pages && !open_pages(view, base)) continue;
        if (!gather_tile(view, state, base, next, tile)) continue;
        run_sweeps(view, base, tile, phase_scratch, copies);
        scatter_tile(view, state, base, tile);
        for (int k = 0; k < view.num_tile_pages; ++k) view.pages.mark(base >> view.page_bits | view.tile_pages[k]);
    }
}

}  // namespace QSIM_ISA
}  // namespace qsim
