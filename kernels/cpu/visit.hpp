// visit.hpp -- walks over the vectors of a tile that a sweep starts from.
#pragma once

#include "tile_program.hpp"

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

}  // namespace QSIM_ISA
}  // namespace qsim
