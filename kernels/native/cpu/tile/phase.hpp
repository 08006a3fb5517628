// cpu/tile/phase.hpp -- any number of diagonals on any qubits as one factor per amplitude.
//
// The factor of amplitude i splits into a table over its low positions, a table over its high ones, and, where diagonals
// couple the two, either a few variants of the low table or a full table. Qubits outside the tile are constant within
// it: their terms are folded into the small tables once per tile.
// Work  8 fused multiply-adds per amplitude (12 with a full table), however many diagonals.
#pragma once

#include "base/simd.hpp"
#include "cpu/tile/program.hpp"

namespace qsim {
namespace QSIM_ISA {

template <class Real>
QSIM_INLINE void multiply(Real& re, Real& im, Real a, Real b) {
    const Real old = re;
    re = a * old - b * im;
    im = a * im + b * old;
}

// The factors of a term on this tile (2^num_inner of them), or null where its outer controls are not met.
template <class Real>
QSIM_INLINE const Real* select_factors(const PhaseTerm& term, const Real* tables, index_t base) {
    if ((base & term.outer_mask) != term.outer_value) return nullptr;
    return tables + 2 * (term.table + (extract(base, term.outer, term.num_outer) << term.num_inner));
}

template <class Real>
struct PhaseTables {
    const Real* low;
    const Real* high;
};

// Low and high tables of this tile, in `scratch` where something outside the tile changes them.
template <class Real>
static PhaseTables<Real> prepare_phase(const TileView<Real>& view, const Phase& phase, index_t base, Real* scratch) {
    constexpr int W = kLanes<Real>;
    const int low_bits = view.low_bits, high_bits = view.num_tile - low_bits;
    const Real* tables = view.tables;
    const Real* low = tables + 2 * phase.low;
    const Real* high = tables + 2 * phase.high;
    if (phase.scalar_begin == phase.part_end) return {low, high};

    const index_t low_size = index_t{1} << low_bits, high_size = index_t{1} << high_bits;
    const index_t variants = index_t{1} << phase.num_variants;
    Real* new_low = scratch;
    Real* new_high = scratch + 2 * low_size * variants;
    Real factor[kMaxTile][4];  // per position: factor of value 0, of value 1
    for (int p = 0; p < view.num_tile; ++p) factor[p][0] = factor[p][2] = 1, factor[p][1] = factor[p][3] = 0;
    Real scalar_re = 1, scalar_im = 0;
    for (std::uint32_t k = phase.scalar_begin; k < phase.scalar_end; ++k)
        if (const Real* f = select_factors(view.terms[k], tables, base)) multiply(scalar_re, scalar_im, f[0], f[1]);
    for (std::uint32_t k = phase.linear_begin; k < phase.linear_end; ++k)
        if (const Real* f = select_factors(view.terms[k], tables, base)) {
            Real* to = factor[view.terms[k].inner[0]];
            multiply(to[0], to[1], f[0], f[1]);
            multiply(to[2], to[3], f[2], f[3]);
        }
    // product tables by doubling: entry with bit p set from the entry without it
    Real product_low[2 << kPhaseLow];
    auto fill = [&](Real* table, int first, int bits, Real re, Real im) {
        table[0] = re, table[1] = im;
        for (int p = 0; p < bits; ++p) {
            const Real* f = factor[first + p];
            const index_t half = index_t{1} << p;
            for (index_t i = 0; i < half; ++i) {
                const Real a = table[2 * i], b = table[2 * i + 1];
                table[2 * (half + i)] = a * f[2] - b * f[3];
                table[2 * (half + i) + 1] = a * f[3] + b * f[2];
                table[2 * i] = a * f[0] - b * f[1];
                table[2 * i + 1] = a * f[1] + b * f[0];
            }
        }
    };
    fill(product_low, 0, low_bits, scalar_re, scalar_im);
    fill(new_high, low_bits, high_bits, Real(1), Real(0));
    for (std::uint32_t k = phase.part_begin; k < phase.part_end; ++k) {
        const PhaseTerm& term = view.terms[k];
        const Real* f = select_factors(term, tables, base);
        if (!f) continue;
        const bool is_low = term.inner[0] < low_bits;
        Real* table = is_low ? product_low : new_high;
        for (index_t i = 0; i < (is_low ? low_size : high_size); ++i) {
            const Real* g = f + 2 * extract(is_low ? i : i << low_bits, term.inner, term.num_inner);
            multiply(table[2 * i], table[2 * i + 1], g[0], g[1]);
        }
    }
    for (index_t i = 0; i < high_size; ++i) multiply(new_high[2 * i], new_high[2 * i + 1], high[2 * i], high[2 * i + 1]);
    for (index_t i = 0; i < low_size * variants; ++i) {  // to vector layout: W re, W im
        const index_t at = i / W * 2 * W + i % W;
        Real re = low[at], im = low[at + W];
        multiply(re, im, product_low[2 * (i % low_size)], product_low[2 * (i % low_size) + 1]);
        new_low[at] = re, new_low[at + W] = im;
    }
    return {new_low, new_high};
}

// `first`: number of the block's first vector in the tile.
template <class Real, bool kFull>
static void apply_phase(const TileView<Real>& view, const Phase& phase, PhaseTables<Real> tables, Real* block, index_t first,
                        int vector_bits) {
    using Vec = typename Simd<Real>::Vec;
    constexpr int W = kLanes<Real>;
    const int low_vector_bits = view.low_bits - view.lane_bits;
    const index_t low_vectors = index_t{1} << low_vector_bits, vectors = index_t{1} << vector_bits;
    const Real* full = view.tables + 2 * phase.full + 2 * W * first;
    for (index_t v = 0; v < vectors; v += low_vectors) {
        const index_t high = (first + v) >> low_vector_bits;
        const Vec scale_re = broadcast<Real>(tables.high[2 * high]), scale_im = broadcast<Real>(tables.high[2 * high + 1]);
        const Real* low = tables.low + 2 * W * low_vectors * extract(high, phase.variant, phase.num_variants);
        for (index_t u = 0; u < low_vectors; ++u) {
            const Vec low_re = load(low + 2 * W * u), low_im = load(low + 2 * W * u + W);
            Vec a = scale_re * low_re - scale_im * low_im, b = scale_re * low_im + scale_im * low_re;
            if (kFull) {
                const Vec c = load(full + 2 * W * (v + u)), d = load(full + 2 * W * (v + u) + W);
                const Vec old = a;
                a = old * c - b * d;
                b = old * d + b * c;
            }
            Real* at = block + 2 * W * (v + u);
            const Vec re = load(at), im = load(at + W);
            store(at, a * re - b * im);
            store(at + W, a * im + b * re);
        }
    }
}

// Terms that fit no table: one look-up per amplitude.
template <class Real>
static void apply_slow_terms(const TileView<Real>& view, const Phase& phase, index_t base, Real* tile) {
    constexpr int W = kLanes<Real>;
    for (std::uint32_t k = phase.slow_begin; k < phase.slow_end; ++k) {
        const PhaseTerm& term = view.terms[k];
        const Real* f = select_factors(term, view.tables, base);
        if (!f) continue;
        const std::uint32_t* index = view.indices + term.inner_index;
        for (index_t i = 0; i < index_t{1} << view.num_tile; ++i) {
            if (index[i] == ~0u) continue;  // a control in the tile is not met
            Real* at = tile + 2 * W * (i / W) + i % W;
            multiply(at[0], at[W], f[2 * index[i]], f[2 * index[i] + 1]);
        }
    }
}

}  // namespace QSIM_ISA
}  // namespace qsim
