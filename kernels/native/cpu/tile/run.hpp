// cpu/tile/run.hpp -- runs a tile program over a state on several threads.
#pragma once

#include "cpu/tile/program.hpp"

namespace qsim {

// `pages`: those of the state.
template <class Real>
void run_program(const TileProgram<Real>& program, Real* state, const PageView& pages, int threads, bool prefetch);

// The same on the calling thread alone, for a state that fits the caches; `scratch` grows as needed and serves any program.
template <class Real>
void run_program(const TileProgram<Real>& program, Real* state, const PageView& pages, AlignedVector<Real>& scratch);

}  // namespace qsim
