// cuda/stage_search.cpp -- beam search: states are what is left to do, steps are phases, ranked by energy spent and expected.
#include "cuda/stage_search.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/parallel.hpp"
#include "cuda/stage_run.hpp"

namespace qsim {

namespace {

constexpr std::size_t kPairs = 5;  // tried in a phase
constexpr std::size_t kSeeds = 3;  // ready items from which register sets grow
constexpr double kIdle = 0.6, kBusy = 900;  // of the picojoules that a last phase has less than kBusy (H200, 2026-11)
constexpr double kLeastWorth = 0.8;  // of a pair's items, over what its blocks cost
constexpr double kSpread = 0.45;  // of an exchange: a store to twice as many lines at once (H200, 2026-11)
constexpr std::array kRates{1.0, 1.5};  // how much states are preferred that have done more
constexpr std::size_t kWidth = 12, kLeastWidth = 4, kLooks = 16000;  // of the beam; narrower where there are many items
constexpr std::size_t kBriefLooks = 600, kBriefLeast = 2;  // where searching is to take no longer than what follows it

struct State {
    std::vector<std::int32_t> left;
    Waiting waiting{};
    double energy = 0, worth = 0;  // spent; of what is done
    std::vector<StageChoice> path;
};

// What to do before the last phase, and what it does; no registers: nothing waits for it.
struct Task {
    std::vector<std::int32_t> left, held;
    index_t registers = 0;
};

// Register sets on the way, and what each of those looked at can do.
struct Growth {
    std::vector<index_t> sets;
    std::unordered_map<index_t, double> worth;
};

class Search {
public:
    Search(const std::vector<StageItem>& items, const StageRules& rules) : items_(items), rules_(rules) {}

    // All items, or what is left of them when those wait that `registers` can do after all others.
    Task task(index_t registers) const {
        Task out;
        out.registers = registers;
        index_t mixed = 0, used = 0;
        for (std::size_t k = items_.size(); k-- > 0;) {
            const StageItem& item = items_[k];
            const bool blocked = item.mixed & (mixed | used) || item.used & mixed;
            const bool waits = registers && !blocked && !(item.mixed & ~registers);
            if (!waits) mixed |= item.mixed, used |= item.used;
            (waits ? out.held : out.left).push_back(static_cast<std::int32_t>(k));
        }
        std::reverse(out.left.begin(), out.left.end());
        std::reverse(out.held.begin(), out.held.end());
        return out;
    }

    // Registers that can do much after all else, none where there are none.
    index_t last_registers() const {
        State reversed;
        for (std::size_t k = items_.size(); k-- > 0;) reversed.left.push_back(static_cast<std::int32_t>(k));
        Growth growth;
        grow(reversed, 0, 0, options(ready(reversed)), rules_.stores, growth);
        return growth.sets.empty() ? 0 : filled(growth.sets.back(), 0, rules_.stores);
    }

    // The path of least energy that is found where items are worth `rate` times their usual energy.
    State best(const Task& task, double rate) const {
        const double exchange = rules_.energies.exchange;
        const auto [looks, least] = rules_.brief ? std::pair(kBriefLooks, kBriefLeast) : std::pair(kLooks, kLeastWidth);
        const std::size_t width = std::clamp(looks / (items_.size() + 1), least, kWidth);
        State start, found;
        start.left = task.left;
        std::vector<State> beam{after(start, {}, 0)};
        found.energy = std::numeric_limits<double>::infinity();
        if (beam[0].left.empty()) found = ended(beam[0], task);
        while (!beam.empty() && !beam[0].left.empty()) {
            std::map<std::vector<std::int32_t>, State> next;
            for (const State& state : beam)
                for (const StageChoice& choice : choices(state)) {
                    State reached = after(state, choice, exchange);
                    if (reached.left.size() == state.left.size()) continue;
                    reached.path.push_back(choice);
                    if (reached.left.empty()) {
                        reached.energy += task.registers ? 0 : ending(choice, reached.energy - state.energy - exchange);
                        reached = ended(reached, task);
                        if (reached.energy < found.energy) found = std::move(reached);
                        continue;
                    }
                    State& known = next[reached.left];
                    if (known.left.empty() || reached.energy < known.energy) known = std::move(reached);
                }
            beam.clear();
            for (auto& [left, state] : next)
                if (state.energy < found.energy) beam.push_back(std::move(state));
            const auto rank = [rate](const State& a) { return a.energy - a.worth * rate; };
            std::stable_sort(beam.begin(), beam.end(), [&](const State& a, const State& b) { return rank(a) < rank(b); });
            if (beam.size() > width) beam.resize(width);
        }
        return found;
    }

private:
    const std::vector<StageItem>& items_;
    const StageRules& rules_;

    State after(const State& state, const StageChoice& choice, double exchange) const {
        State out;
        out.path = state.path;
        Run run(items_, rules_, choice.registers, choice.pair, choice.registers, state.waiting);
        run.over(state.left, &out.left);
        out.waiting = run.waiting;
        out.energy = state.energy + run.energy + exchange;
        if (state.path.empty() && choice.registers & rules_.loads) out.energy += rules_.energies.exchange;
        out.worth = state.worth + run.worth;
        return out;
    }

    // Of a last phase that itself costs `energy`. Threads that differ in a pair's qubits store to several lines at once; a phase that
    // holds lines needs another after it.
    double ending(const StageChoice& choice, double energy) const {
        const double exchange = rules_.energies.exchange;
        if (choice.registers & rules_.stores) return exchange + idle(0);
        return (rules_.stores ? kSpread * exchange * count(choice.pair & ~rules_.stores) : 0) + idle(energy);
    }

    // The last phase's work hides the fetch of what is left of the next tile.
    static double idle(double energy) { return kIdle * std::max(kBusy - energy, 0.0); }

    // The state after what was held back.
    State ended(const State& state, const Task& task) const {
        if (!task.registers) return state;
        State out = state;
        out.left = task.held;
        out = after(out, {task.registers, 0}, rules_.energies.exchange);
        out.energy += idle(out.energy - state.energy - rules_.energies.exchange);
        out.path.push_back({task.registers, 0});
        return out;
    }

    double worth(const State& state, index_t registers, index_t pair) const {
        Run run(items_, rules_, registers, pair, registers, state.waiting);
        run.over(state.left, nullptr);
        return run.worth;
    }

    // Masks of what could act now if its qubits were at hand.
    std::vector<index_t> ready(const State& state) const {
        std::vector<index_t> out;
        index_t mixed = 0, used = 0;
        int blocked = 0;
        for (const std::int32_t k : state.left) {
            const StageItem& item = items_[k];
            if (item.mixed && !(item.mixed & (mixed | used)) && !(item.used & mixed) &&
                std::find(out.begin(), out.end(), item.mixed) == out.end())
                out.push_back(item.mixed);
            mixed |= item.mixed;
            used |= item.used;
            if (++blocked == kWindow) break;
        }
        return out;
    }

    std::vector<index_t> pairs(const State& state) const {
        index_t wanted = 0;
        for (std::size_t k = 0; k < std::min<std::size_t>(state.left.size(), kWindow); ++k) wanted |= items_[state.left[k]].mixed;
        std::vector<std::pair<double, index_t>> found;
        for (std::size_t i = 0; rules_.pairs && i < rules_.tile.size(); ++i)
            for (std::size_t j = i + 1; j < rules_.tile.size(); ++j) {
                const index_t pair = index_t{1} << rules_.tile[i] | index_t{1} << rules_.tile[j];
                if ((j - i) % rules_.line_qubits == 0 || pair & ~wanted) continue;
                Run run(items_, rules_, 0, pair, rules_.inside, state.waiting);  // whatever registers it will have
                run.over(state.left, nullptr);
                if (run.worth > kLeastWorth * run.energy) found.emplace_back(run.energy - run.worth, pair);
            }
        std::stable_sort(found.begin(), found.end());
        std::vector<index_t> out{0};
        for (const auto& [energy, pair] : found)
            if (out.size() <= kPairs) out.push_back(pair);
        return out;
    }

    // `registers` filled up with others, first with those on which nothing could act, lines last.
    index_t filled(index_t registers, index_t pair, index_t busy) const {
        for (const index_t last : {busy | rules_.loads, rules_.loads, index_t{0}})
            for (std::size_t i = rules_.tile.size(); i-- > 0 && count(registers) < rules_.register_qubits;) {
                const index_t qubit = index_t{1} << rules_.tile[i];
                if (!(qubit & (pair | last))) registers |= qubit;
            }
        return registers;
    }

    // `registers` grown by what lets most be done: all sets on the way.
    void grow(const State& state, index_t registers, index_t pair, const std::vector<index_t>& options, index_t avoid, Growth& out) const {
        const auto worth_of = [&](index_t set) {
            const auto [at, fresh] = out.worth.try_emplace(set, 0.0);
            if (fresh) at->second = worth(state, set, pair);
            return at->second;
        };
        double most = worth_of(registers);
        for (;;) {
            if (registers || pair) out.sets.push_back(registers);
            index_t best = 0;
            double found = most;
            for (const index_t mask : options) {
                const index_t option = registers | mask;
                if (!(mask & ~registers) || mask & (avoid | pair) || count(option) > rules_.register_qubits) continue;
                const double now = worth_of(option);
                if (now > found) found = now, best = option;
            }
            if (!best) return;
            registers = best;
            most = found;
        }
    }

    // What a register set may grow by: the masks of `ready`, and every qubit.
    std::vector<index_t> options(std::vector<index_t> ready) const {
        for (const int q : rules_.tile)
            if (std::find(ready.begin(), ready.end(), index_t{1} << q) == ready.end()) ready.push_back(index_t{1} << q);
        return ready;
    }

    std::vector<StageChoice> choices(const State& state) const {
        const std::vector<index_t> at_hand = ready(state);
        const std::vector<index_t> masks = options(at_hand);
        const index_t avoid = state.path.empty() ? rules_.loads : 0;
        index_t busy = 0;
        for (const index_t mask : at_hand) busy |= mask;
        std::set<std::pair<index_t, index_t>> out;
        for (const index_t pair : pairs(state)) {
            Growth growth;
            grow(state, 0, pair, masks, avoid, growth);
            std::size_t seeds = 0;
            for (const index_t mask : at_hand)
                if (!(mask & (pair | avoid)) && count(mask) <= rules_.register_qubits && seeds++ < kSeeds)
                    grow(state, mask, pair, masks, avoid, growth);
            if (avoid) grow(state, 0, pair, masks, 0, growth);
            for (const index_t registers : growth.sets) out.emplace(filled(registers, pair, busy), pair);
        }
        std::vector<StageChoice> list;
        for (const auto& [registers, pair] : out) list.push_back({registers, pair});
        return list;
    }
};

}  // namespace

StagePlan search_stages(const std::vector<StageItem>& items, const StageRules& rules) {
    const Search search(items, rules);
    std::vector<std::pair<index_t, double>> ways;  // what waits for the end, and how much is preferred that has done more
    const index_t last = search.last_registers();
    for (const index_t registers : {index_t{0}, last})
        if (registers || ways.empty())
            for (const double rate : kRates)
                if (!rules.brief || rate == kRates.back()) ways.emplace_back(registers, rate);
    std::vector<State> found(ways.size());
    const int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));
    parallel_chunks(ways.size(), rules.brief ? 1 : threads, [&](std::uint64_t i, int) {
        found[i] = search.best(search.task(ways[i].first), ways[i].second);
    });
    const auto least = [](const State& a, const State& b) { return a.energy < b.energy; };
    const auto best = std::min_element(found.begin(), found.end(), least);
    return {best->path, ways[best - found.begin()].first != 0};
}

}  // namespace qsim
