// cpu/history/run.cpp -- workers with a stack of histories each; one that has none left takes from another.
//
// The history with the fewest shots is followed first, on a copy of the state, so a worker holds at most log2(shots) states.
#include "cpu/history/run.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "base/helper_thread.hpp"
#include "cpu/state/measure.hpp"
#include "cpu/state/state.hpp"
#include "sampling/binomial.hpp"
#include "sampling/outcomes.hpp"
#include "sampling/stream.hpp"

namespace qsim {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWordBits = 64;
constexpr std::size_t kSpareStates = 32;  // of a worker, for histories to come
constexpr unsigned kNodesPerLook = 64;  // nodes between two looks at the clock
constexpr auto kSoloTime = std::chrono::milliseconds(1);    // before helpers start: to start one takes some 50 us
constexpr auto kCheckTime = std::chrono::milliseconds(20);  // between two calls of request.check
constexpr auto kIdleTime = std::chrono::microseconds(20);   // before an idle worker looks for work again

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
    unsigned nodes_until_look = kNodesPerLook;
};

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

class Run {
  public:
    Run(const HistoryProgram& program, const HistoryRequest& request)
        : program_(program), request_(request), exact_(request.shots == 0), num_workers_(exact_ ? 1 : std::max(request.threads, 1)) {
        for (int k = 0; k < num_workers_; ++k) {
            workers_.push_back(std::make_unique<Worker>());
            workers_[k]->visits.resize(program.nodes().size());
            workers_[k]->resets.resize(program.nodes().size());
        }
        idle_ = num_workers_ - 1;  // helpers that have not started have nothing to do
    }

    HistoryResult all() {
        start_ = last_check_ = Clock::now();
        History first;
        first.state = std::make_unique<State>(program_.num_qubits(), program_.single());
        first.bits.resize((program_.num_clbits() + kWordBits - 1) / kWordBits);
        first.key = request_.key;
        first.weight = exact_ ? 1.0 : static_cast<double>(request_.shots);
        guarded([&] {
            follow(0, std::move(first));
            work(0);
        });
        for (HelperThread& helper : helpers_) helper.join();
        if (failure_) std::rethrow_exception(failure_);
        return collected();
    }

  private:
    template <class Work>
    void guarded(Work&& work) {
        try {
            work();
        } catch (...) {
            if (!failed_.exchange(true)) failure_ = std::current_exception();
        }
    }

    void work(int number) {
        History history;
        while (!failed_) {
            if (next_history(number, history) || steal(number, history)) {
                follow(number, std::move(history));
                continue;
            }
            if (num_workers_ == 1) return;
            ++idle_;
            for (bool stolen = false; !stolen;) {
                if (failed_ || idle_ == num_workers_) return;
                if (number == 0) look();
                std::this_thread::sleep_for(kIdleTime);
                --idle_;
                stolen = steal(number, history);
                if (!stolen) ++idle_;
            }
            follow(number, std::move(history));
        }
    }

    // Starts helpers once the run has lasted a while, and calls the check; on the calling thread.
    void look() {
        const auto now = Clock::now();
        if (helpers_.empty() && num_workers_ > 1 && now - start_ > kSoloTime) start_helpers();
        if (now - last_check_ > kCheckTime) {
            last_check_ = now;
            request_.check();
        }
    }

    void start_helpers() {
        helpers_.reserve(num_workers_ - 1);
        idle_ -= num_workers_ - 1;
        for (int number = 1; number < num_workers_; ++number) {
            try {
                helpers_.emplace_back([this, number] { guarded([&] { work(number); }); });
            } catch (const std::system_error&) {
                idle_ += num_workers_ - number;  // fewer threads than asked for: they stay idle
                if (helpers_.empty()) start_ = Clock::time_point::max();
                return;
            }
        }
    }

    // The next history of a parting; its state is a copy, or the parting's own where it is the last.
    History fork(Worker& worker, Parting& parting, Share share) {
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

    bool next_history(int number, History& out) {
        Worker& worker = *workers_[number];
        Share share;
        {
            const std::lock_guard<std::mutex> lock(worker.mutex);
            if (worker.partings.empty()) return false;
            share = take(worker, worker.partings, worker.partings.size() - 1, out);
        }
        go_on(worker, out, share);
        return true;
    }

    bool steal(int number, History& out) {
        Worker& worker = *workers_[number];
        for (int k = 1; k < num_workers_; ++k) {
            Worker& victim = *workers_[(number + k) % num_workers_];
            Share share;
            {
                const std::lock_guard<std::mutex> lock(victim.mutex);
                if (victim.partings.empty()) continue;
                share = take(worker, victim.partings, 0, out);
            }
            go_on(worker, out, share);
            return true;
        }
        return false;
    }

    // Takes a history from the parting at `place`; the caller holds the lock.
    Share take(Worker& worker, std::deque<Parting>& partings, std::size_t place, History& out) {
        Parting& parting = partings[place];
        const Share share = parting.shares[parting.next++];
        if (parting.next < parting.shares.size()) {
            out = fork(worker, parting, share);
            count_fork();
        } else {
            out = std::move(parting.history);
            out.weight = share.weight;
            partings.erase(partings.begin() + static_cast<std::ptrdiff_t>(place));
        }
        return share;
    }

    void count_fork() {
        if (exact_ && ++forks_ >= request_.max_branches) throw HistoryFailure(HistoryFailure::kBranches, 0, 0);
    }

    // Projects on the outcome and moves past the measurement or reset.
    void go_on(Worker& worker, History& history, const Share& share) {
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

    // Runs `history` to its end, or to where it parts.
    void follow(int number, History history) {
        Worker& worker = *workers_[number];
        while (!failed_) {
            if (--worker.nodes_until_look == 0) {
                worker.nodes_until_look = kNodesPerLook;
                if (number == 0) look();
            }
            const HistoryNode& node = program_.nodes()[history.node];
            ++worker.visits[history.node];
            switch (node.type) {
                case NodeType::kPrepare: prepare(*history.state, node); break;
                case NodeType::kPass: node.pass->run(*history.state, worker.scratch); break;
                case NodeType::kMeasure:
                case NodeType::kReset:
                    if (!measure(worker, history, node)) return;
                    continue;
                case NodeType::kChoose: choose(history, node); continue;
                case NodeType::kAssign: {
                    const std::uint64_t value = node.values[value_of(history.bits, node.bits)];
                    for (std::size_t j = 0; j < node.written.size(); ++j) write_bit(history.bits, node.written[j], value >> j);
                    break;
                }
                case NodeType::kEnd: end(worker, history, node); return;
            }
            history.node = node.next;
        }
    }

    void prepare(State& state, const HistoryNode& node) {
        state.visit([&](auto* amps) { prepare_product(amps, state.num_qubits(), node.factors.data(), state.pages(), 1); });
    }

    void choose(History& history, const HistoryNode& node) {
        const index_t value = value_of(history.bits, node.bits);
        if (node.back[value] && ++history.rounds > request_.max_rounds)
            throw HistoryFailure(HistoryFailure::kRounds, history.node, 0);
        history.node = node.targets[value];
    }

    static void recycle(Worker& worker, History& history) {
        if (worker.spare.size() < kSpareStates) worker.spare.push_back(std::move(history.state));
    }

    Stream& stream_of(History& history) {
        if (!history.stream) history.stream.emplace(request_.seed, history.key);
        return *history.stream;
    }

    // Goes on with the only outcome, or leaves the history in a parting, or ends it where no outcome is likely enough;
    // returns whether it goes on.
    bool measure(Worker& worker, History& history, const HistoryNode& node) {
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
    void split_shots(Worker& worker, History& history, double norm) {
        const auto& probabilities = worker.probabilities;
        worker.weights.resize(probabilities.size());
        worker.counts.resize(probabilities.size());
        for (std::size_t k = 0; k < probabilities.size(); ++k) worker.weights[k] = probabilities[k] / norm;
        multinomial(stream_of(history), static_cast<std::int64_t>(history.weight), worker.weights.data(), probabilities.size(),
                    worker.counts.data());
        for (std::size_t k = 0; k < probabilities.size(); ++k)
            if (worker.counts[k]) worker.shares.push_back({k, static_cast<double>(worker.counts[k]), probabilities[k]});
        sort_shares(worker.shares);
    }

    // Shares of the history's probability, least first.
    void split_weight(Worker& worker, const History& history, double norm) {
        const auto& probabilities = worker.probabilities;
        const double scale = history.weight / norm;
        worker.weights.clear();
        for (std::size_t k = 0; k < probabilities.size(); ++k) {
            const double weight = probabilities[k] * scale;
            if (weight >= request_.least) worker.shares.push_back({k, weight, probabilities[k]});
            else worker.weights.push_back(weight);
        }
        neglected_ += pairwise_sum(worker.weights.data(), worker.weights.size());
        sort_shares(worker.shares);
    }

    static void sort_shares(std::vector<Share>& shares) {
        std::stable_sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.weight < b.weight; });
    }

    void end(Worker& worker, History& history, const HistoryNode& node) {
        ++worker.histories;
        std::vector<index_t> shown;
        for (const auto& [clbit, place] : node.clbits) {
            if (place / kWordBits >= static_cast<int>(shown.size())) shown.resize(place / kWordBits + 1);
            shown[place / kWordBits] |= (history.bits[clbit / kWordBits] >> clbit % kWordBits & 1) << place % kWordBits;
        }
        history.state->settle(1);
        if (exact_) exact_end(history, node, std::move(shown));
        else sampled_end(worker, history, node, std::move(shown));
        recycle(worker, history);
    }

    void sampled_end(Worker& worker, History& history, const HistoryNode& node, std::vector<index_t> shown) {
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

    Outcomes sampled(History& history, Reads& reads, std::size_t shots) {
        std::vector<double> uniforms(shots);
        std::vector<std::int64_t> samples(shots);
        Stream& stream = stream_of(history);
        for (double& uniform : uniforms) uniform = stream.uniform();
        State& state = *history.state;
        state.visit([&](auto* amps) { sample_states(amps, state.num_qubits(), uniforms.data(), shots, samples.data(), 1); });
        return distinct_outcomes(samples.data(), shots, reads, request_.memory);
    }

    void exact_end(const History& history, const HistoryNode& node, std::vector<index_t> shown) {
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
    std::size_t place_of(const std::string& label) {
        const auto [entry, is_new] = places_.try_emplace(label, labels_.size());
        if (is_new) {
            labels_.push_back(label);
            exact_values_.push_back(0);
        }
        return entry->second;
    }

    HistoryResult collected() {
        HistoryResult out;
        std::vector<Leaf> leaves;
        for (auto& worker : workers_) {
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
        if (exact_) out.weights = std::move(exact_values_);
        out.neglected = neglected_;
        add_tallies(out);
        return out;
    }

    void add_tallies(HistoryResult& out) const {
        out.visits.resize(program_.nodes().size());
        out.resets.resize(program_.nodes().size());
        for (const auto& worker : workers_)
            for (std::size_t k = 0; k < out.visits.size(); ++k) {
                out.visits[k] += worker->visits[k];
                out.resets[k].resize(std::max(out.resets[k].size(), worker->resets[k].size()));
                for (std::size_t j = 0; j < worker->resets[k].size(); ++j) out.resets[k][j] += worker->resets[k][j];
            }
    }

    const HistoryProgram& program_;
    const HistoryRequest& request_;
    bool exact_;
    int num_workers_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<HelperThread> helpers_;
    std::atomic<int> idle_{0};
    std::atomic<bool> failed_{false};
    std::exception_ptr failure_;
    Clock::time_point start_, last_check_;
    // of exact probabilities, which one worker follows alone
    std::int64_t forks_ = 0;
    double neglected_ = 0;
    // of the result
    std::unordered_map<std::string, std::size_t> places_;
    std::vector<std::string> labels_;
    std::vector<double> exact_values_;
};

}  // namespace

HistoryResult run_histories(const HistoryProgram& program, const HistoryRequest& request) {
    program.finish();
    return Run(program, request).all();
}

}  // namespace qsim
