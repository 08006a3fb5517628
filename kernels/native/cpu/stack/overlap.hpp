// cpu/stack/overlap.hpp -- out[row, column] += sum of conj(bra[row]) ket[column] over one tile: all that a derivative of one
// operator needs. Included once per instruction set.
// Source  arXiv:2009.02823 (adjoint differentiation): dE/dx = 2 Re sum over entries of dU/dx times this.
#pragma once

#include "cpu/stack/gates.hpp"

namespace qsim {
namespace QSIM_ISA {

// conj(bra) ket, added to two vectors.
static inline void add_product(StackVec br, StackVec bi, StackVec kr, StackVec ki, StackVec& re, StackVec& im) {
    re += br * kr + bi * ki;
    im += br * ki - bi * kr;
}

static inline void add_entry(const StackVec& re, const StackVec& im, int lane, index_t entry, double* out) {
    out[2 * entry] += re[lane];
    out[2 * entry + 1] += im[lane];
}

static inline void overlap_diagonal(const StackOp& op, const StackTile& bra, const StackTile& ket, double* out, double* table) {
    const StackHigh high = high_targets(op);
    const StackSites sites = stack_sites(op, ket.bits, 0);
    for (index_t i = 0; i < index_t{2} * kStackLanes << high.count; ++i) table[i] = 0;
    for (index_t k = 0; k < sites.count; ++k) {
        const index_t v = sites.at(k), at = kStackLanes * v;
        double* sum = table + 2 * kStackLanes * extract(v, high.at, high.count);
        StackVec re = load(sum), im = load(sum + kStackLanes);
        add_product(load(bra.re + at), load(bra.im + at), load(ket.re + at), load(ket.im + at), re, im);
        store(sum, re);
        store(sum + kStackLanes, im);
    }
    const index_t first = outer_index(op, ket.base);
    for (index_t h = 0; h < index_t{1} << high.count; ++h)
        for (int l = 0; l < kStackLanes; ++l)
            if (sites.lane(l))
                add_entry(load(table + 2 * kStackLanes * h), load(table + 2 * kStackLanes * h + kStackLanes), l,
                          first | deposit(h, high.to, high.count) | lane_index(op, l), out);
}

static inline void overlap_pair_high(const StackSites& sites, int position, const StackTile& bra, const StackTile& ket, double* out) {
    const index_t step = index_t{1} << position;
    StackVec sums[2][2][2] = {};
    for (index_t k = 0; k < sites.count; ++k) {
        const index_t at[2] = {kStackLanes * sites.at(k), kStackLanes * sites.at(k) + step};
        for (int r = 0; r < 2; ++r)
            for (int c = 0; c < 2; ++c)
                add_product(load(bra.re + at[r]), load(bra.im + at[r]), load(ket.re + at[c]), load(ket.im + at[c]),
                            sums[r][c][0], sums[r][c][1]);
    }
    for (int entry = 0; entry < 4; ++entry)
        for (int l = 0; l < kStackLanes; ++l)
            if (sites.lane(l)) add_entry(sums[entry >> 1][entry & 1][0], sums[entry >> 1][entry & 1][1], l, entry, out);
}

template <int kBit>
static inline void overlap_pair_lane(const StackSites& sites, const StackTile& bra, const StackTile& ket, double* out) {
    StackVec own[2] = {}, other[2] = {};
    for (index_t k = 0; k < sites.count; ++k) {
        const index_t at = kStackLanes * sites.at(k);
        const StackVec br = load(bra.re + at), bi = load(bra.im + at), kr = load(ket.re + at), ki = load(ket.im + at);
        add_product(br, bi, kr, ki, own[0], own[1]);
        add_product(br, bi, flip_lanes<double, kBit>(kr), flip_lanes<double, kBit>(ki), other[0], other[1]);
    }
    for (int l = 0; l < kStackLanes; ++l) {
        if (!sites.lane(l)) continue;
        const index_t row = (l >> kBit) & 1;
        add_entry(own[0], own[1], l, 3 * row, out);
        add_entry(other[0], other[1], l, 2 * row + 1 - row, out);
    }
}

static inline void overlap_pair(const StackOp& op, const StackTile& bra, const StackTile& ket, double* out) {
    const int position = op.inner[0];
    const StackSites sites = stack_sites(op, ket.bits, std::uint32_t{1} << position);
    if (position >= kStackLaneBits) return overlap_pair_high(sites, position, bra, ket, out);
    if (position == 0) return overlap_pair_lane<0>(sites, bra, ket, out);
    if constexpr (kStackLaneBits > 1)
        if (position == 1) return overlap_pair_lane<1>(sites, bra, ket, out);
    if constexpr (kStackLaneBits > 2) overlap_pair_lane<2>(sites, bra, ket, out);
}

static inline void overlap_dense(const StackOp& op, const StackTile& bra, const StackTile& ket, double* out) {
    const StackGroups groups = stack_groups(op, ket.bits);
    const index_t size = index_t{1} << op.num_inner;
    for (index_t r = 0; r < size; ++r)
        for (index_t c = 0; c < size; ++c) {
            const index_t row = spread_index(op, r) | op.control_value, column = spread_index(op, c) | op.control_value;
            double re = 0, im = 0;
            for (index_t k = 0; k < groups.count; ++k) {
                const index_t at = insert_zeros(k, groups.fixed, groups.num_fixed);
                const double br = bra.re[at | row], bi = bra.im[at | row], kr = ket.re[at | column], ki = ket.im[at | column];
                re += br * kr + bi * ki;
                im += br * ki - bi * kr;
            }
            out[2 * (r * size + c)] += re;
            out[2 * (r * size + c) + 1] += im;
        }
}

static void stack_overlap(const StackOp& op, const StackTile& bra, const StackTile& ket, double* out, double* scratch) {
    if ((ket.base & op.outer_mask) != op.outer_value) return;
    if (op.type == StackType::kDiagonal) return overlap_diagonal(op, bra, ket, out, scratch);
    if (op.type == StackType::kPair) return overlap_pair(op, bra, ket, out);
    overlap_dense(op, bra, ket, out);
}

}  // namespace QSIM_ISA
}  // namespace qsim
