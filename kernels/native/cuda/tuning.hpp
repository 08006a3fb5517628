// cuda/tuning.hpp -- constants of one GPU, an H200, by which stages of a tile pass are compared.
//
// Energies are in picojoules an amplitude, as in StageEnergies: an H200 runs passes at the limit of its power, so time goes as energy.
// Source     fitted to times of whole passes over 26 to 30 qubits (H200, 2026-11)
#pragma once

namespace qsim {

// A table of phases that both threads and tiles tell apart costs this many tables: each thread looks up its entry in every tile.
constexpr double kTablesPerThread = 4;
// The last stage's work hides the fetch of the next tile up to kBusy; each picojoule less than that costs kIdle.
constexpr double kIdle = 0.6, kBusy = 900;
// Storing to twice as many 128-byte lines at once costs this share of an exchange.
constexpr double kSpread = 0.45;

}  // namespace qsim
