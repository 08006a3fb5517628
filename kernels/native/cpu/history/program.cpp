// cpu/history/program.cpp -- checks the nodes of a history program when they are added.
#include "cpu/history/program.hpp"

#include <algorithm>
#include <stdexcept>

namespace qsim {

namespace {

constexpr int kMaxHistoryBits = 16;  // classical bits that one table reads

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

bool all_below(const std::vector<int>& values, int limit) {
    return std::all_of(values.begin(), values.end(), [limit](int value) { return value >= 0 && value < limit; });
}

}  // namespace

HistoryProgram::HistoryProgram(int num_qubits, bool single, int num_clbits)
    : num_qubits_(num_qubits), num_clbits_(num_clbits), single_(single) {}

int HistoryProgram::add(HistoryNode node) {
    require(all_below(node.qubits, num_qubits_), "a node reads a qubit outside the state");
    require(all_below(node.bits, num_clbits_) && all_below(node.written, num_clbits_), "a node uses a classical bit that is not there");
    require(static_cast<int>(node.bits.size()) <= kMaxHistoryBits, "a table reads more than 16 classical bits");
    const std::size_t entries = std::size_t{1} << node.bits.size();
    if (node.type == NodeType::kPrepare) require(node.factors.size() == 2u * num_qubits_, "two factors per qubit are needed");
    if (node.type == NodeType::kPass) require(node.pass != nullptr, "a pass is needed");
    if (node.type == NodeType::kChoose)
        require(node.targets.size() == entries && node.back.size() == entries, "a table needs an entry for every value");
    if (node.type == NodeType::kAssign)
        require(node.values.size() == entries && node.written.size() <= 64, "a table needs an entry for every value");
    for (const auto& [first, second] : node.clbits) {
        const bool measure = node.type == NodeType::kMeasure;
        const int bit = measure ? second : first, place = measure ? first : second;
        require(bit >= 0 && bit < num_clbits_, "a node uses a classical bit that is not there");
        require(place >= 0 && (!measure || place < static_cast<int>(node.qubits.size())), "a node has a place that is not there");
    }
    for (const auto& [qubit, place] : node.reads)
        require(qubit >= 0 && qubit < num_qubits_ && place >= 0, "a node reads a qubit outside the state");
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
}

void HistoryProgram::finish() const {
    const int count = static_cast<int>(nodes_.size());
    require(count > 0, "a program has no node");
    for (const HistoryNode& node : nodes_)
        require(node.next >= 0 && node.next < count && all_below(node.targets, count), "a node is followed by one that is not there");
}

}  // namespace qsim
