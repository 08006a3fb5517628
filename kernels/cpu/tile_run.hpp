// tile_run.hpp -- runs a tile program over a state on several threads.
#pragma once

#include "tile_program.hpp"

namespace qsim {

// `written`: the flags of the state's pages (pages.hpp), null where all are written.
template <class Real>
void run_program(const TileProgram<Real>& program, Real* state, std::uint8_t* written, int threads, bool prefetch);

int lane_bits(bool single);  // log2 of the amplitudes one vector register holds

}  // namespace qsim
