// cpu/tile/visit.hpp -- walks over the vectors of a tile that a sweep starts from.
#pragma once

#include "base/simd.hpp"
#include "cpu/tile/program.hpp"

namespace qsim {
namespace QSIM_ISA {

// The vectors a controlled sweep on `targets` visits: numbers with targets 0 and controls at their value.
//     for (Visit visit(sweep, bits); visit.left(); visit.next()) ... visit.vector() ...
class Visit {
  public:
    Visit(const Sweep& sweep, int vector_bits) : value_(sweep.controls.vertical_value), end_(index_t{1} << vector_bits) {
        fixed_ = sweep.controls.vertical_mask;
        for (int j = 0; j < sweep.num_targets; ++j) fixed_ |= index_t{1} << sweep.targets[j];
    }
    bool left() const { return at_ < end_; }
    index_t vector() const { return at_ | value_; }
    // Adding one with the fixed bits set carries over them.
    void next() { at_ = ((at_ | fixed_) + 1) & ~fixed_; }

  private:
    index_t at_ = 0, fixed_ = 0, value_, end_;
};

// All ones in the lanes whose number satisfies the controls.
template <class Real>
QSIM_INLINE typename Simd<Real>::Mask lane_mask(const Controls& controls) {
    typename Simd<Real>::Mask mask{};
    for (int lane = 0; lane < kLanes<Real>; ++lane)
        mask[lane] = (lane & controls.lane_mask) == controls.lane_value ? -1 : 0;
    return mask;
}

// Offsets (in numbers) of the 2^k vectors of a group, from its first.
QSIM_INLINE index_t group_offset(const Sweep& sweep, index_t member, int lanes) {
    return 2 * lanes * deposit(member, sweep.targets, sweep.num_targets);
}

template <class Real, int kColumns>
QSIM_INLINE void store_rows(Real* const* columns, index_t at, const typename Simd<Real>::Vec (&y)[kColumns][2], bool masked,
                            typename Simd<Real>::Mask mask) {
    constexpr int W = kLanes<Real>;
#pragma GCC unroll 2
    for (int j = 0; j < kColumns; ++j) {
        Real* to = columns[j] + at;
        store(to, masked ? (mask ? y[j][0] : load(to)) : y[j][0]);
        store(to + W, masked ? (mask ? y[j][1] : load(to + W)) : y[j][1]);
    }
}

}  // namespace QSIM_ISA
}  // namespace qsim
