// cpu/tile/pass.hpp -- one tile pass over a state, in either precision: operators, compiled before the first run.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "cpu/state/state.hpp"
#include "cpu/tile/compile.hpp"
#include "cpu/tile/program.hpp"

namespace qsim {

// Memory that one thread's passes over small states use again and again.
struct TileScratch {
    AlignedVector<double> doubles;
    AlignedVector<float> floats;
};

class TilePass {
  public:
    // `qubits`: those of the tile. Outside it `zero_qubits` and `one_qubits` are known to be |0> and |1>: tiles where one of them
    // reads otherwise hold zeros, and are left alone.
    TilePass(int num_qubits, std::vector<int> qubits, std::vector<int> zero_qubits, std::vector<int> one_qubits, bool single);

    void add(const OpList& ops);
    void finish();  // compiles the operators; none may be added afterwards
    void run(State& state, int threads);
    void run(State& state, TileScratch& scratch) const;  // a finished pass, on the calling thread alone
    bool fits(int num_qubits, bool single) const { return single == single_ && std::max(num_qubits, kPaddedQubits) == num_qubits_; }
    std::vector<int> sweep_types();  // SweepType of each sweep, for tests

  private:
    void check(const TileOp& op);
    std::vector<int> tile_qubits(int lanes) const;
    template <class Real>
    std::unique_ptr<TileProgram<Real>> compile();

    int num_qubits_;
    std::vector<int> qubits_, zero_qubits_, one_qubits_;
    bool single_;
    int largest_ = 0;  // most targets of an operator that is neither a diagonal nor H on each target
    std::vector<TileOp> ops_;
    std::unique_ptr<TileProgram<double>> double_;
    std::unique_ptr<TileProgram<float>> float_;
};

}  // namespace qsim
