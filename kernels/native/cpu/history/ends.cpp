// cpu/history/ends.cpp -- the ends of histories: deferred measurements are sampled, or their probabilities are added up.
#include <algorithm>
#include <iterator>

#include "cpu/history/worker.hpp"
#include "cpu/state/measure.hpp"
#include "sampling/binomial.hpp"
#include "sampling/outcomes.hpp"

namespace qsim {

namespace {

constexpr int kWordBits = 64;

}  // namespace

void HistoryEnds::end(Worker& worker, History& history, const HistoryNode& node) {
    ++worker.histories;
    std::vector<index_t> shown;
    for (const auto& [clbit, place] : node.clbits) {
        if (place / kWordBits >= static_cast<int>(shown.size())) shown.resize(place / kWordBits + 1);
        shown[place / kWordBits] |= (history.bits[clbit / kWordBits] >> clbit % kWordBits & 1) << place % kWordBits;
    }
    history.state->settle(1);
    if (request_.shots == 0) exact_end(history, node, std::move(shown));
    else sampled_end(worker, history, node, std::move(shown));
    recycle(worker, history);
}

void HistoryEnds::sampled_end(Worker& worker, History& history, const HistoryNode& node, std::vector<index_t> shown) {
    const auto shots = static_cast<std::size_t>(history.weight);
    Leaf leaf;
    Reads reads = node.reads;
    std::vector<index_t> keys{0};
    if (reads.empty()) {
        leaf.counts = {static_cast<std::int64_t>(shots)};
        if (request_.memory) leaf.order.assign(shots, 0);
    } else {
        Outcomes outcomes = sampled(history, reads, shots);
        keys = std::move(outcomes.keys);
        leaf.counts = std::move(outcomes.counts);
        leaf.order = std::move(outcomes.order);
    }
    ValueWriter writer(reads, std::move(shown));
    for (index_t key : keys) leaf.labels.push_back(writer.text(key));
    leaf.key = std::move(history.key);
    worker.leaves.push_back(std::move(leaf));
}

Outcomes HistoryEnds::sampled(History& history, Reads& reads, std::size_t shots) {
    std::vector<double> uniforms(shots);
    std::vector<std::int64_t> samples(shots);
    Stream& stream = stream_of(history, request_);
    for (double& uniform : uniforms) uniform = stream.uniform();
    State& state = *history.state;
    state.visit([&](auto* amps) { sample_states(amps, state.num_qubits(), uniforms.data(), shots, samples.data(), 1); });
    return distinct_outcomes(samples.data(), shots, reads, request_.memory);
}

void HistoryEnds::exact_end(const History& history, const HistoryNode& node, std::vector<index_t> shown) {
    std::vector<int> qubits;
    for (const auto& [qubit, place] : node.reads) qubits.push_back(qubit);
    std::sort(qubits.begin(), qubits.end());
    qubits.erase(std::unique(qubits.begin(), qubits.end()), qubits.end());
    Reads reads = node.reads;
    for (auto& [qubit, place] : reads)
        qubit = static_cast<int>(std::lower_bound(qubits.begin(), qubits.end(), qubit) - qubits.begin());
    std::vector<double> probabilities(std::size_t{1} << qubits.size(), 1.0);
    const State& state = *history.state;
    if (!qubits.empty())
        state.visit([&](auto* amps) { marginal_probabilities(amps, state.num_qubits(), qubits, probabilities.data(), 1); });
    const double scale = history.weight / pairwise_sum(probabilities.data(), probabilities.size());
    std::vector<double> rare;
    std::size_t likely = 0;
    for (double& probability : probabilities) {
        probability *= scale;
        if (probability < request_.least) {
            rare.push_back(probability);
            probability = 0;
        }
        likely += probability != 0;
    }
    neglected_ += pairwise_sum(rare.data(), rare.size());
    if (likely + exact_values_.size() > request_.max_outcomes) throw HistoryFailure(HistoryFailure::kOutcomes, history.node, 0);
    ValueWriter writer(reads, std::move(shown));
    for (std::size_t key = 0; key < probabilities.size(); ++key)
        if (probabilities[key] != 0) exact_values_[place_of(writer.text(key))] += probabilities[key];
}

// The label's place in the result, where it is appended if it is new.
std::size_t HistoryEnds::place_of(const std::string& label) {
    const auto [entry, is_new] = places_.try_emplace(label, labels_.size());
    if (is_new) {
        labels_.push_back(label);
        exact_values_.push_back(0);
    }
    return entry->second;
}

HistoryResult HistoryEnds::collected(const std::vector<std::unique_ptr<Worker>>& workers) {
    HistoryResult out;
    std::vector<Leaf> leaves;
    for (auto& worker : workers) {
        std::move(worker->leaves.begin(), worker->leaves.end(), std::back_inserter(leaves));
        out.histories += worker->histories;
    }
    std::sort(leaves.begin(), leaves.end(), [](const Leaf& a, const Leaf& b) { return a.key < b.key; });
    if (request_.memory) out.order.reserve(static_cast<std::size_t>(request_.shots));
    std::vector<std::int64_t> places;
    for (const Leaf& leaf : leaves) {
        places.clear();
        for (std::size_t k = 0; k < leaf.labels.size(); ++k) {
            const std::size_t place = place_of(leaf.labels[k]);
            out.counts.resize(labels_.size());
            out.counts[place] += leaf.counts[k];
            places.push_back(static_cast<std::int64_t>(place));
        }
        for (std::int64_t k : leaf.order) out.order.push_back(places[static_cast<std::size_t>(k)]);
    }
    out.labels = std::move(labels_);
    if (request_.shots == 0) out.weights = std::move(exact_values_);
    out.neglected = neglected_;
    add_tallies(workers, out);
    return out;
}

void HistoryEnds::add_tallies(const std::vector<std::unique_ptr<Worker>>& workers, HistoryResult& out) const {
    out.visits.resize(program_.nodes().size());
    out.resets.resize(program_.nodes().size());
    for (const auto& worker : workers)
        for (std::size_t k = 0; k < out.visits.size(); ++k) {
            out.visits[k] += worker->visits[k];
            out.resets[k].resize(std::max(out.resets[k].size(), worker->resets[k].size()));
            for (std::size_t j = 0; j < worker->resets[k].size(); ++j) out.resets[k][j] += worker->resets[k][j];
        }
}

}  // namespace qsim
