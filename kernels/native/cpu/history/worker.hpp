// cpu/history/worker.hpp -- histories that run, what a worker holds of them, and what they do at the nodes of a program.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cpu/history/program.hpp"
#include "cpu/history/run.hpp"
#include "cpu/state/state.hpp"
#include "sampling/stream.hpp"

namespace qsim {

struct History {
    std::unique_ptr<State> state;
    std::vector<index_t> bits;       // classical bits, in words
    std::vector<std::uint32_t> key;  // of its stream
    std::optional<Stream> stream;    // made when first needed
    double weight = 0;               // shots, or a probability
    int node = 0;
    std::uint32_t depth = 0;         // outcomes so far
    std::int64_t rounds = 0;         // of loops so far
};

struct Share {
    index_t outcome;
    double weight, probability;
};

// A history before its outcome, and what goes on from there: the last share takes the history itself.
struct Parting {
    History history;
    std::vector<Share> shares;
    std::size_t next = 0;
};

struct Leaf {
    std::vector<std::uint32_t> key;
    std::vector<std::string> labels;
    std::vector<std::int64_t> counts, order;
};

struct Worker {
    std::mutex mutex;  // of `partings`
    std::deque<Parting> partings;
    std::vector<std::unique_ptr<State>> spare;
    TileScratch scratch;
    std::vector<double> probabilities, weights;
    std::vector<std::int64_t> counts;
    std::vector<std::size_t> taken;
    std::vector<Share> shares;
    std::vector<Leaf> leaves;
    std::vector<std::int64_t> visits;
    std::vector<std::vector<std::int64_t>> resets;
    std::int64_t histories = 0;
    unsigned nodes_until_look = 1;
};

// The ends of histories: labels in the order in which they came, and their counts or probabilities.
class HistoryEnds {
  public:
    HistoryEnds(const HistoryProgram& program, const HistoryRequest& request) : program_(program), request_(request) {}

    // Ends `history` at `node`: samples its shots, or adds its exact probabilities.
    void end(Worker& worker, History& history, const HistoryNode& node);
    void neglect(double probability) { neglected_ += probability; }
    HistoryResult collected(const std::vector<std::unique_ptr<Worker>>& workers);

  private:
    void sampled_end(Worker& worker, History& history, const HistoryNode& node, std::vector<index_t> shown);
    Outcomes sampled(History& history, Reads& reads, std::size_t shots);
    void exact_end(const History& history, const HistoryNode& node, std::vector<index_t> shown);
    std::size_t place_of(const std::string& label);
    void add_tallies(const std::vector<std::unique_ptr<Worker>>& workers, HistoryResult& out) const;

    const HistoryProgram& program_;
    const HistoryRequest& request_;
    std::unordered_map<std::string, std::size_t> places_;
    std::vector<std::string> labels_;
    // of exact probabilities, which one worker follows alone
    std::vector<double> exact_values_;
    double neglected_ = 0;
};

// What a history does at a node.
class HistoryWalk {
  public:
    HistoryWalk(const HistoryProgram& program, const HistoryRequest& request)
        : ends(program, request), program_(program), request_(request), exact_(request.shots == 0) {}

    History first() const;
    // Does the node of `history` and moves on; returns false where the history has ended or is left in a parting.
    bool advance(Worker& worker, History& history);
    // Takes the next history from the parting at `place`; the caller holds the lock of `partings`.
    Share take(Worker& worker, std::deque<Parting>& partings, std::size_t place, History& out);
    // Projects on the outcome and moves past the measurement or reset.
    void go_on(Worker& worker, History& history, const Share& share) const;

    HistoryEnds ends;

  private:
    History fork(Worker& worker, const Parting& parting, const Share& share) const;
    void choose(History& history, const HistoryNode& node) const;
    bool measure(Worker& worker, History& history, const HistoryNode& node);
    void split_shots(Worker& worker, History& history, double norm) const;
    void split_weight(Worker& worker, const History& history, double norm);

    const HistoryProgram& program_;
    const HistoryRequest& request_;
    bool exact_;
    std::int64_t forks_ = 0;  // with exact probabilities
};

// Keeps the state of an ended history for one to come.
void recycle(Worker& worker, History& history);

// The random numbers of `history`.
Stream& stream_of(History& history, const HistoryRequest& request);

}  // namespace qsim
