// planner/zero_start.hpp -- operators after |0...0>, ordered by the qubits that they change, so that a growing state stays small.
#pragma once

#include <utility>
#include <vector>

#include "ir/op_list.hpp"

namespace qsim {

// The operators that may act while only qubits of `live` change, and the others; each in order, the first before the second.
std::pair<OpList, OpList> split_live(const OpList& ops, index_t live);

// Up to `count` of `qubits`, the first such that most work may act before it changes, each next one likewise beside those before.
std::vector<int> longest_zero_qubits(const OpList& ops, index_t qubits, int count);

}  // namespace qsim
