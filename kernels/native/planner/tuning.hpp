// planner/tuning.hpp -- constants of the machines on which planning was measured.
#pragma once

namespace qsim {

constexpr double kSecondsPerItem = 2e-9;  // one look of a search at one operator (EPYC 9004, 2026-11)
constexpr double kShareOfRun = 0.06;      // a search for fewer passes may take this share of the time of all passes
constexpr double kLongestSeconds = 0.05;  // and no longer than this
constexpr double kDensePair = 4.0;        // a full matrix on two qubits costs as many rotations, phases and exchanges included (H200, 2026-11)

}  // namespace qsim
