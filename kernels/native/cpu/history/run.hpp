// cpu/history/run.hpp -- follows every history of a program that some shot takes, or that has a probability.
//
// Histories part at measurements: shots are shared out by a multinomial draw from the history's own stream, so a history
// depends on the seed and its outcomes alone, and results do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "cpu/history/program.hpp"

namespace qsim {

struct HistoryRequest {
    std::int64_t shots = 0;  // 0: exact probabilities
    bool memory = false;     // whether the order of the shots is wanted
    std::vector<std::uint32_t> seed, key;  // of the random streams: the job's seed, the program's index in the job
    int threads = 1;
    double norm_drift = 0;   // most that the norm may differ from 1
    double least = 0;        // with exact probabilities: less is not followed
    std::int64_t max_rounds = 0, max_branches = 0;
    std::size_t max_outcomes = 0;
    std::function<void()> check;  // called on the calling thread every 20 ms; what it throws ends the run
};

struct HistoryResult {
    std::vector<std::string> labels;   // hexadecimal values, distinct, by the first history that has each
    std::vector<std::int64_t> counts;  // of each; empty with exact probabilities
    std::vector<double> weights;       // with exact probabilities
    std::vector<std::int64_t> order;   // place in `labels` of each shot, history by history; empty where not wanted
    std::int64_t histories = 0;
    double neglected = 0;              // probability of what was not followed
    std::vector<std::int64_t> visits;  // of each node
    std::vector<std::vector<std::int64_t>> resets;  // of each node: how often each outcome was reset
};

// A run that cannot go on.
class HistoryFailure : public std::exception {
  public:
    enum Reason { kNorm, kRounds, kBranches, kOutcomes };
    HistoryFailure(Reason reason, int node, double value) : reason(reason), node(node), value(value) {}
    const char* what() const noexcept override { return "a history cannot be followed"; }

    Reason reason;
    int node;      // where
    double value;  // kNorm: the norm
};

HistoryResult run_histories(const HistoryProgram& program, const HistoryRequest& request);

}  // namespace qsim
