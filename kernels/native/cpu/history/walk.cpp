// cpu/history/walk.cpp -- nodes: passes, measurements and resets that part histories, jumps and stores of classical bits.
#include <algorithm>
#include <cmath>

#include "cpu/history/worker.hpp"
#include "cpu/state/measure.hpp"
#include "sampling/binomial.hpp"

namespace qsim {

namespace {

constexpr int kWordBits = 64;
constexpr std::size_t kSpareStates = 32;  // of a worker, for histories to come

index_t value_of(const std::vector<index_t>& words, const std::vector<int>& bits) {
    index_t value = 0;
    for (std::size_t j = 0; j < bits.size(); ++j) value |= (words[bits[j] / kWordBits] >> bits[j] % kWordBits & 1) << j;
    return value;
}

void write_bit(std::vector<index_t>& words, int place, index_t value) {
    index_t& word = words[place / kWordBits];
    const index_t mask = index_t{1} << place % kWordBits;
    word = value & 1 ? word | mask : word & ~mask;
}

// X on the qubits of `ones`, all of which read 1.
template <class Real>
void clear_ones(std::complex<Real>* state, int num_qubits, index_t ones) {
    const index_t others = ((index_t{1} << num_qubits) - 1) & ~ones;
    index_t i = 0;
    do {
        state[i] = state[i | ones];
        state[i | ones] = 0;
        i = (i - others) & others;
    } while (i);
}

void sort_shares(std::vector<Share>& shares) {
    std::stable_sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.weight < b.weight; });
}

}  // namespace

void recycle(Worker& worker, History& history) {
    if (worker.spare.size() < kSpareStates) worker.spare.push_back(std::move(history.state));
}

Stream& stream_of(History& history, const HistoryRequest& request) {
    if (!history.stream) history.stream.emplace(request.seed, history.key);
    return *history.stream;
}

History HistoryWalk::first() const {
    History out;
    out.state = std::make_unique<State>(program_.num_qubits(), program_.single());
    out.bits.resize((program_.num_clbits() + kWordBits - 1) / kWordBits);
    out.key = request_.key;
    out.weight = exact_ ? 1.0 : static_cast<double>(request_.shots);
    return out;
}

bool HistoryWalk::advance(Worker& worker, History& history) {
    const HistoryNode& node = program_.nodes()[history.node];
    State& state = *history.state;
    ++worker.visits[history.node];
    switch (node.type) {
        case NodeType::kPrepare:
            state.visit([&](auto* amps) { prepare_product(amps, state.num_qubits(), node.factors.data(), state.pages(), 1); });
            break;
        case NodeType::kPass: node.pass->run(state, worker.scratch); break;
        case NodeType::kMeasure:
        case NodeType::kReset: return measure(worker, history, node);
        case NodeType::kChoose: choose(history, node); return true;
        case NodeType::kAssign: {
            const std::uint64_t value = node.values[value_of(history.bits, node.bits)];
            for (std::size_t j = 0; j < node.written.size(); ++j) write_bit(history.bits, node.written[j], value >> j);
            break;
        }
        case NodeType::kEnd: ends.end(worker, history, node); return false;
    }
    history.node = node.next;
    return true;
}

// The next history of a parting; its state is a copy, or the parting's own where it is the last.
History HistoryWalk::fork(Worker& worker, const Parting& parting, const Share& share) const {
    const History& from = parting.history;
    History out;
    if (worker.spare.empty()) {
        out.state = std::make_unique<State>(program_.num_qubits(), program_.single());
    } else {
        out.state = std::move(worker.spare.back());
        worker.spare.pop_back();
    }
    out.state->copy_from(*from.state, 1);
    out.bits = from.bits;
    out.key.reserve(from.key.size() + 2);
    out.key = from.key;
    out.key.push_back(from.depth);
    out.key.push_back(static_cast<std::uint32_t>(share.outcome));
    out.weight = share.weight;
    out.node = from.node, out.depth = from.depth, out.rounds = from.rounds;
    return out;
}

Share HistoryWalk::take(Worker& worker, std::deque<Parting>& partings, std::size_t place, History& out) {
    Parting& parting = partings[place];
    const Share share = parting.shares[parting.next++];
    if (parting.next < parting.shares.size()) {
        out = fork(worker, parting, share);
        if (exact_ && ++forks_ >= request_.max_branches) throw HistoryFailure(HistoryFailure::kBranches, 0, 0);
    } else {
        out = std::move(parting.history);
        out.weight = share.weight;
        partings.erase(partings.begin() + static_cast<std::ptrdiff_t>(place));
    }
    return share;
}

// Projects on the outcome and moves past the measurement or reset.
void HistoryWalk::go_on(Worker& worker, History& history, const Share& share) const {
    const HistoryNode& node = program_.nodes()[history.node];
    const int count = static_cast<int>(node.qubits.size());
    const index_t mask = deposit(~index_t{0}, node.qubits.data(), count), value = deposit(share.outcome, node.qubits.data(), count);
    State& state = *history.state;
    state.visit([&](auto* amps) {
        collapse(amps, state.num_qubits(), mask, value, 1 / std::sqrt(share.probability), 1);
        if (node.type == NodeType::kReset && value) clear_ones(amps, state.num_qubits(), value);
    });
    ++history.depth;
    history.weight = share.weight;
    for (const auto& [place, clbit] : node.clbits) write_bit(history.bits, clbit, share.outcome >> place);
    if (node.type == NodeType::kReset) {
        auto& counts = worker.resets[history.node];
        counts.resize(std::size_t{1} << count);
        ++counts[share.outcome];
    }
    history.node = node.next;
}

void HistoryWalk::choose(History& history, const HistoryNode& node) const {
    const index_t value = value_of(history.bits, node.bits);
    if (node.back[value] && ++history.rounds > request_.max_rounds)
        throw HistoryFailure(HistoryFailure::kRounds, history.node, 0);
    history.node = node.targets[value];
}

// Goes on with the only outcome, or leaves the history in a parting, or ends it where no outcome is likely enough;
// returns whether it goes on.
bool HistoryWalk::measure(Worker& worker, History& history, const HistoryNode& node) {
    State& state = *history.state;
    auto& probabilities = worker.probabilities;
    probabilities.resize(std::size_t{1} << node.qubits.size());
    state.settle(1);
    state.visit([&](auto* amps) {
        marginal_probabilities(amps, state.num_qubits(), node.qubits, probabilities.data(), 1);
    });
    const double norm = pairwise_sum(probabilities.data(), probabilities.size());
    if (!(std::fabs(norm - 1) <= request_.norm_drift)) throw HistoryFailure(HistoryFailure::kNorm, history.node, norm);
    worker.shares.clear();
    if (exact_) split_weight(worker, history, norm);
    else split_shots(worker, history, norm);
    if (worker.shares.empty()) {
        recycle(worker, history);
        return false;
    }
    if (worker.shares.size() == 1) {
        go_on(worker, history, worker.shares[0]);
        return true;
    }
    const std::lock_guard<std::mutex> lock(worker.mutex);
    worker.partings.push_back({std::move(history), worker.shares, 0});
    return false;
}

// Shares of the shots, fewest first.
void HistoryWalk::split_shots(Worker& worker, History& history, double norm) const {
    const auto& probabilities = worker.probabilities;
    worker.weights.resize(probabilities.size());
    worker.counts.resize(probabilities.size());
    for (std::size_t k = 0; k < probabilities.size(); ++k) worker.weights[k] = probabilities[k] / norm;
    multinomial(stream_of(history, request_), static_cast<std::int64_t>(history.weight), worker.weights.data(), probabilities.size(),
                worker.counts.data());
    for (std::size_t k = 0; k < probabilities.size(); ++k)
        if (worker.counts[k]) worker.shares.push_back({k, static_cast<double>(worker.counts[k]), probabilities[k]});
    sort_shares(worker.shares);
}

// Shares of the history's probability, least first.
void HistoryWalk::split_weight(Worker& worker, const History& history, double norm) {
    const auto& probabilities = worker.probabilities;
    const double scale = history.weight / norm;
    worker.weights.clear();
    for (std::size_t k = 0; k < probabilities.size(); ++k) {
        const double weight = probabilities[k] * scale;
        if (weight >= request_.least) worker.shares.push_back({k, weight, probabilities[k]});
        else worker.weights.push_back(weight);
    }
    ends.neglect(pairwise_sum(worker.weights.data(), worker.weights.size()));
    sort_shares(worker.shares);
}

}  // namespace qsim
