// cpu/stack/gates.hpp -- operators inside one tile, real and imaginary parts apart. Included once per instruction set.
// Source  arXiv:1704.01127, section 3.1 (gates on strided amplitudes); one complex product per matrix entry, rounds once each.
#pragma once

#include "base/simd.hpp"
#include "cpu/stack/op.hpp"

namespace qsim {
namespace QSIM_ISA {

typedef Simd<double>::Vec StackVec;
constexpr int kStackLanes = kLanes<double>;
constexpr int kStackLaneBits = kStackLanes == 8 ? 3 : kStackLanes == 4 ? 2 : 1;

// Where a controlled operator acts: lanes by a mask, vectors by enumeration.
struct StackSites {
    std::uint8_t fixed[kStackTile + 1];  // bits of the vector number that enumeration skips, ascending
    int num_fixed = 0;
    index_t value = 0;  // of the controls among them
    index_t count = 0;
    std::uint32_t lane_mask, lane_value;

    bool lane(int l) const { return (l & lane_mask) == lane_value; }
    index_t at(index_t k) const { return insert_zeros(k, fixed, num_fixed) | value; }
};

// Enumerates vectors whose controls are satisfied and whose bits in `skip_mask` (positions) are 0.
static inline StackSites stack_sites(const StackOp& op, int bits, std::uint32_t skip_mask) {
    constexpr std::uint32_t kLow = kStackLanes - 1;
    StackSites sites;
    sites.lane_mask = op.control_mask & kLow;
    sites.lane_value = op.control_value & kLow;
    sites.value = op.control_value >> kStackLaneBits;
    const std::uint32_t skipped = (op.control_mask | skip_mask) >> kStackLaneBits;
    for (int b = 0; b < bits - kStackLaneBits; ++b)
        if (skipped >> b & 1) sites.fixed[sites.num_fixed++] = static_cast<std::uint8_t>(b);
    sites.count = index_t{1} << (bits - kStackLaneBits - sites.num_fixed);
    return sites;
}

// The data index that the bits outside the tile choose.
static inline index_t outer_index(const StackOp& op, index_t base) {
    index_t out = 0;
    for (int j = 0; j < op.num_outer; ++j) out |= ((base >> op.outer[j]) & 1) << op.outer_bit[j];
    return out;
}

// Targets of a diagonal above the lanes: (bit of the vector number, bit of the data index).
struct StackHigh {
    std::uint8_t at[kStackTargets], to[kStackTargets];
    int count = 0;
};
static inline StackHigh high_targets(const StackOp& op) {
    StackHigh high;
    for (int j = 0; j < op.num_inner; ++j)
        if (op.inner[j] >= kStackLaneBits) {
            high.at[high.count] = static_cast<std::uint8_t>(op.inner[j] - kStackLaneBits);
            high.to[high.count++] = op.inner_bit[j];
        }
    return high;
}
static inline index_t lane_index(const StackOp& op, int lane) {
    index_t out = 0;
    for (int j = 0; j < op.num_inner; ++j)
        if (op.inner[j] < kStackLaneBits) out |= static_cast<index_t>((lane >> op.inner[j]) & 1) << op.inner_bit[j];
    return out;
}

// A table of one vector of factors per value of the high targets, then one product per vector.
static inline void apply_diagonal(const StackOp& op, const double* data, bool adjoint, const StackTile& tile, double* table) {
    const StackHigh high = high_targets(op);
    const StackSites sites = stack_sites(op, tile.bits, 0);
    const index_t first = outer_index(op, tile.base);
    for (index_t h = 0; h < index_t{1} << high.count; ++h)
        for (int l = 0; l < kStackLanes; ++l) {
            const index_t entry = first | deposit(h, high.to, high.count) | lane_index(op, l);
            double* to = table + 2 * kStackLanes * h + l;
            to[0] = sites.lane(l) ? data[2 * entry] : 1;
            to[kStackLanes] = sites.lane(l) ? (adjoint ? -data[2 * entry + 1] : data[2 * entry + 1]) : 0;
        }
    for (index_t k = 0; k < sites.count; ++k) {
        const index_t v = sites.at(k);
        const double* factor = table + 2 * kStackLanes * extract(v, high.at, high.count);
        const StackVec a = load(factor), b = load(factor + kStackLanes);
        double *re = tile.re + kStackLanes * v, *im = tile.im + kStackLanes * v;
        const StackVec x = load(re), y = load(im);
        store(re, a * x - b * y);
        store(im, a * y + b * x);
    }
}

// The 2x2 matrix as vectors: [row][column][re, im]; lanes whose controls are not satisfied hold the identity.
struct PairCoefficients {
    StackVec entry[2][2][2];
};
static inline PairCoefficients pair_coefficients(const double* data, bool adjoint, const StackSites& sites) {
    PairCoefficients out;
    for (int r = 0; r < 2; ++r)
        for (int c = 0; c < 2; ++c) {
            const double* from = data + 2 * (adjoint ? 2 * c + r : 2 * r + c);
            const double re = from[0], im = adjoint ? -from[1] : from[1];
            for (int l = 0; l < kStackLanes; ++l) {
                out.entry[r][c][0][l] = sites.lane(l) ? re : (r == c);
                out.entry[r][c][1][l] = sites.lane(l) ? im : 0;
            }
        }
    return out;
}

static inline void apply_pair_high(const PairCoefficients& u, const StackSites& sites, int position, const StackTile& tile) {
    const index_t step = index_t{1} << position;  // numbers between the two halves
    for (index_t k = 0; k < sites.count; ++k) {
        double *r0 = tile.re + kStackLanes * sites.at(k), *i0 = tile.im + (r0 - tile.re);
        double *r1 = r0 + step, *i1 = i0 + step;
        const StackVec a = load(r0), b = load(i0), c = load(r1), d = load(i1);
        store(r0, u.entry[0][0][0] * a - u.entry[0][0][1] * b + u.entry[0][1][0] * c - u.entry[0][1][1] * d);
        store(i0, u.entry[0][0][0] * b + u.entry[0][0][1] * a + u.entry[0][1][0] * d + u.entry[0][1][1] * c);
        store(r1, u.entry[1][0][0] * a - u.entry[1][0][1] * b + u.entry[1][1][0] * c - u.entry[1][1][1] * d);
        store(i1, u.entry[1][0][0] * b + u.entry[1][0][1] * a + u.entry[1][1][0] * d + u.entry[1][1][1] * c);
    }
}

template <int kBit>
static inline void apply_pair_lane(const PairCoefficients& u, const StackSites& sites, const StackTile& tile) {
    StackVec own[2], other[2];  // of each lane: the entry on the diagonal of its row, and the one beside it
    for (int part = 0; part < 2; ++part)
        for (int l = 0; l < kStackLanes; ++l) {
            const int row = (l >> kBit) & 1;
            own[part][l] = u.entry[row][row][part][l];
            other[part][l] = u.entry[row][1 - row][part][l];
        }
    for (index_t k = 0; k < sites.count; ++k) {
        double *re = tile.re + kStackLanes * sites.at(k), *im = tile.im + (re - tile.re);
        const StackVec a = load(re), b = load(im);
        const StackVec c = flip_lanes<double, kBit>(a), d = flip_lanes<double, kBit>(b);
        store(re, own[0] * a - own[1] * b + other[0] * c - other[1] * d);
        store(im, own[0] * b + own[1] * a + other[0] * d + other[1] * c);
    }
}

static inline void apply_pair(const StackOp& op, const double* data, bool adjoint, const StackTile& tile) {
    const int position = op.inner[0];
    const StackSites sites = stack_sites(op, tile.bits, std::uint32_t{1} << position);
    const PairCoefficients u = pair_coefficients(data, adjoint, sites);
    if (position >= kStackLaneBits) return apply_pair_high(u, sites, position, tile);
    if (position == 0) return apply_pair_lane<0>(u, sites, tile);
    if constexpr (kStackLaneBits > 1)
        if (position == 1) return apply_pair_lane<1>(u, sites, tile);
    if constexpr (kStackLaneBits > 2) apply_pair_lane<2>(u, sites, tile);
}

// Positions that stay free of a matrix on several targets: its targets and controls, ascending.
struct StackGroups {
    std::uint8_t fixed[kStackTile];
    int num_fixed = 0;
    index_t count;
};
static inline StackGroups stack_groups(const StackOp& op, int bits) {
    StackGroups groups;
    std::uint32_t mask = op.control_mask;
    for (int j = 0; j < op.num_inner; ++j) mask |= std::uint32_t{1} << op.inner[j];
    for (int b = 0; b < bits; ++b)
        if (mask >> b & 1) groups.fixed[groups.num_fixed++] = static_cast<std::uint8_t>(b);
    groups.count = index_t{1} << (bits - groups.num_fixed);
    return groups;
}
static inline index_t spread_index(const StackOp& op, index_t value) {
    index_t out = 0;
    for (int j = 0; j < op.num_inner; ++j) out |= ((value >> op.inner_bit[j]) & 1) << op.inner[j];
    return out;
}

// kDense and kPermute: the amplitudes of one group are copied, then written anew.
static inline void apply_groups(const StackOp& op, const double* data, const std::int64_t* indices, bool adjoint,
                                const StackTile& tile, double* copy) {
    const StackGroups groups = stack_groups(op, tile.bits);
    const index_t size = index_t{1} << op.num_inner;
    index_t* place = reinterpret_cast<index_t*>(copy + 2 * size);
    for (index_t j = 0; j < size; ++j) place[j] = spread_index(op, j);
    for (index_t k = 0; k < groups.count; ++k) {
        const index_t at = insert_zeros(k, groups.fixed, groups.num_fixed) | op.control_value;
        for (index_t j = 0; j < size; ++j) {
            copy[2 * j] = tile.re[at | place[j]];
            copy[2 * j + 1] = tile.im[at | place[j]];
        }
        for (index_t r = 0; r < size; ++r) {
            if (op.type == StackType::kPermute) {
                const index_t from = adjoint ? indices[r] : r, to = adjoint ? r : indices[r];
                const double a = data[2 * r], b = adjoint ? -data[2 * r + 1] : data[2 * r + 1];
                tile.re[at | place[to]] = a * copy[2 * from] - b * copy[2 * from + 1];
                tile.im[at | place[to]] = a * copy[2 * from + 1] + b * copy[2 * from];
                continue;
            }
            double re = 0, im = 0;
            for (index_t c = 0; c < size; ++c) {
                const double* u = data + 2 * (adjoint ? c * size + r : r * size + c);
                const double a = u[0], b = adjoint ? -u[1] : u[1];
                re += a * copy[2 * c] - b * copy[2 * c + 1];
                im += a * copy[2 * c + 1] + b * copy[2 * c];
            }
            tile.re[at | place[r]] = re;
            tile.im[at | place[r]] = im;
        }
    }
}

}  // namespace QSIM_ISA
}  // namespace qsim
