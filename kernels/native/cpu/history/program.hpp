// cpu/history/program.hpp -- a program with measurements on a few qubits, as a graph of nodes that histories walk through.
// A history is one sequence of outcomes. The qubits of a node are those of the state.
#pragma once

#include <complex>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bits.hpp"
#include "cpu/tile/pass.hpp"
#include "sampling/outcomes.hpp"

namespace qsim {

enum class NodeType : std::uint8_t {
    kPrepare,  // the state becomes a product state
    kPass,     // a tile pass
    kMeasure,  // outcomes of `qubits` go to classical bits
    kReset,    // the same outcomes, then X on the qubits that read 1
    kChoose,   // goes to targets[value of `bits`]
    kAssign,   // values[value of `bits`] goes to `written`
    kEnd       // what the classical bits show and the deferred measurements read
};

struct HistoryNode {
    NodeType type = NodeType::kEnd;
    int next = 0;
    std::vector<std::complex<double>> factors;     // kPrepare: two of each qubit
    const TilePass* pass = nullptr;                // kPass: a finished one, which outlives the program
    std::vector<int> qubits;                       // kMeasure, kReset
    std::vector<std::pair<int, int>> clbits;       // kMeasure: (place in `qubits`, bit); kEnd: (bit, place in the value)
    std::vector<int> bits, written;                // kChoose, kAssign
    std::vector<int> targets;                      // kChoose
    std::vector<char> back;                        // kChoose: whether targets[value] begins a further round of a loop
    std::vector<std::uint64_t> values;             // kAssign
    Reads reads;                                   // kEnd: (qubit, place in the value)
};

class HistoryProgram {
  public:
    HistoryProgram(int num_qubits, bool single, int num_clbits);

    // Appends `node` and returns its number; node 0 is the first one. Throws std::invalid_argument.
    int add(HistoryNode node);
    void set_next(int node, int next) { nodes_.at(node).next = next; }
    void set_target(int node, int value, int target) { nodes_.at(node).targets.at(value) = target; }
    // Checks that every node is followed by one that exists. Throws std::invalid_argument.
    void finish() const;

    int num_qubits() const { return num_qubits_; }
    bool single() const { return single_; }
    int num_clbits() const { return num_clbits_; }
    const std::vector<HistoryNode>& nodes() const { return nodes_; }

  private:
    int num_qubits_, num_clbits_;
    bool single_;
    std::vector<HistoryNode> nodes_;
};

}  // namespace qsim
