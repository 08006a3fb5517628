// cuda/stage_search.cpp -- beam search over stages: a state is a list of items left to do, ranked by energy and progress.
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

constexpr std::size_t kPairs = 5;  // pairs tried in a stage
constexpr std::size_t kSeeds = 3;  // ready items from which register sets grow
constexpr double kLeastWorth = 0.8;  // a pair is tried where its items are worth at least this share of its blocks' energy
constexpr std::array kRates{1.0, 1.5};  // how much progress counts against energy
constexpr std::size_t kWidth = 12, kLeastWidth = 4, kLooks = 16000;  // the beam's width; narrower where there are many items
constexpr std::size_t kBriefLooks = 600, kBriefLeast = 2;  // the same of a brief search

struct SearchState {
    std::vector<std::int32_t> left;
    Waiting waiting{};
    double energy = 0, worth = 0;  // spent so far; progress so far
    std::vector<StageChoice> path;
};

// Items to do before the last stage, and items that wait for it; without registers nothing waits.
struct Task {
    std::vector<std::int32_t> left, held;
    index_t registers = 0;
};

// Register sets in order of growth, and the worth of each set that was tried.
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

    // Registers in which much can be done after all other items; 0 where there are none.
    index_t last_registers() const {
        SearchState reversed;
        for (std::size_t k = items_.size(); k-- > 0;) reversed.left.push_back(static_cast<std::int32_t>(k));
        Growth growth;
        grow(reversed, 0, 0, options(ready(reversed)), rules_.stores, growth);
        return growth.sets.empty() ? 0 : filled(growth.sets.back(), 0, rules_.stores);
    }

    // The cheapest path of a beam search in which progress counts `rate` times.
    SearchState best(const Task& task, double rate) const {
        const double exchange = rules_.energies.exchange;
        const auto [looks, least] = rules_.brief ? std::pair(kBriefLooks, kBriefLeast) : std::pair(kLooks, kLeastWidth);
        const std::size_t width = std::clamp(looks / (items_.size() + 1), least, kWidth);
        SearchState start, cheapest;
        start.left = task.left;
        std::vector<SearchState> beam{after(start, {}, 0)};
        cheapest.energy = std::numeric_limits<double>::infinity();
        if (beam[0].left.empty()) cheapest = ended(beam[0], task);
        while (!beam.empty() && !beam[0].left.empty()) {
            std::map<std::vector<std::int32_t>, SearchState> next;
            for (const SearchState& state : beam)
                for (const StageChoice& choice : choices(state)) {
                    SearchState reached = after(state, choice, exchange);
                    if (reached.left.size() == state.left.size()) continue;
                    reached.path.push_back(choice);
                    if (reached.left.empty()) {
                        reached.energy += task.registers ? 0 : ending(choice, reached.energy - state.energy - exchange);
                        reached = ended(reached, task);
                        if (reached.energy < cheapest.energy) cheapest = std::move(reached);
                        continue;
                    }
                    SearchState& known = next[reached.left];
                    if (known.left.empty() || reached.energy < known.energy) known = std::move(reached);
                }
            beam.clear();
            for (auto& [left, state] : next)
                if (state.energy < cheapest.energy) beam.push_back(std::move(state));
            const auto rank = [rate](const SearchState& a) { return a.energy - a.worth * rate; };
            std::stable_sort(beam.begin(), beam.end(), [&](const SearchState& a, const SearchState& b) { return rank(a) < rank(b); });
            if (beam.size() > width) beam.resize(width);
        }
        return cheapest;
    }

private:
    const std::vector<StageItem>& items_;
    const StageRules& rules_;

    SearchState after(const SearchState& state, const StageChoice& choice, double exchange) const {
        SearchState out;
        out.path = state.path;
        StageRun run(items_, rules_, choice.registers, choice.pair, choice.registers, state.waiting);
        run.over(state.left, &out.left);
        out.waiting = run.waiting;
        out.energy = state.energy + run.energy + exchange;
        if (state.path.empty() && choice.registers & rules_.loads) out.energy += rules_.energies.exchange;
        out.worth = state.worth + run.worth;
        return out;
    }

    // The energy added by a last stage that itself costs `energy`. Threads that differ in a pair's qubits store to several lines at once;
    // a stage whose registers hold a line's qubits needs one more exchange.
    double ending(const StageChoice& choice, double energy) const {
        const double exchange = rules_.energies.exchange;
        if (choice.registers & rules_.stores) return exchange + idle(0);
        return (rules_.stores ? kSpread * exchange * count(choice.pair & ~rules_.stores) : 0) + idle(energy);
    }

    // The last stage's work hides the rest of the next tile's fetch: too little of it costs energy.
    static double idle(double energy) { return kIdle * std::max(kBusy - energy, 0.0); }

    // The state after the items that waited for the last stage.
    SearchState ended(const SearchState& state, const Task& task) const {
        if (!task.registers) return state;
        SearchState out = state;
        out.left = task.held;
        out = after(out, {task.registers, 0}, rules_.energies.exchange);
        out.energy += idle(out.energy - state.energy - rules_.energies.exchange);
        out.path.push_back({task.registers, 0});
        return out;
    }

    double worth(const SearchState& state, index_t registers, index_t pair) const {
        StageRun run(items_, rules_, registers, pair, registers, state.waiting);
        run.over(state.left, nullptr);
        return run.worth;
    }

    // Masks of the items that could act now if registers held their qubits.
    std::vector<index_t> ready(const SearchState& state) const {
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

    std::vector<index_t> pairs(const SearchState& state) const {
        index_t wanted = 0;
        for (std::size_t k = 0; k < std::min<std::size_t>(state.left.size(), kWindow); ++k) wanted |= items_[state.left[k]].mixed;
        std::vector<std::pair<double, index_t>> candidates;
        for (std::size_t i = 0; rules_.pairs && i < rules_.tile.size(); ++i)
            for (std::size_t j = i + 1; j < rules_.tile.size(); ++j) {
                const index_t pair = index_t{1} << rules_.tile[i] | index_t{1} << rules_.tile[j];
                if ((j - i) % rules_.line_qubits == 0 || pair & ~wanted) continue;
                StageRun run(items_, rules_, 0, pair, rules_.inside, state.waiting);  // whatever registers it will have
                run.over(state.left, nullptr);
                if (run.worth > kLeastWorth * run.energy) candidates.emplace_back(run.energy - run.worth, pair);
            }
        std::stable_sort(candidates.begin(), candidates.end());
        std::vector<index_t> out{0};
        for (const auto& [energy, pair] : candidates)
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

    // Grows `registers` by the mask that adds most worth, as long as one does; writes all sets on the way to `out`.
    void grow(const SearchState& state, index_t registers, index_t pair, const std::vector<index_t>& options, index_t avoid, Growth& out) const {
        const auto worth_of = [&](index_t set) {
            const auto [at, fresh] = out.worth.try_emplace(set, 0.0);
            if (fresh) at->second = worth(state, set, pair);
            return at->second;
        };
        double most = worth_of(registers);
        for (;;) {
            if (registers || pair) out.sets.push_back(registers);
            index_t best = 0;
            double best_worth = most;
            for (const index_t mask : options) {
                const index_t option = registers | mask;
                if (!(mask & ~registers) || mask & (avoid | pair) || count(option) > rules_.register_qubits) continue;
                const double now = worth_of(option);
                if (now > best_worth) best_worth = now, best = option;
            }
            if (!best) return;
            registers = best;
            most = best_worth;
        }
    }

    // Masks by which a register set may grow: those of `ready`, and every qubit.
    std::vector<index_t> options(std::vector<index_t> ready) const {
        for (const int q : rules_.tile)
            if (std::find(ready.begin(), ready.end(), index_t{1} << q) == ready.end()) ready.push_back(index_t{1} << q);
        return ready;
    }

    std::vector<StageChoice> choices(const SearchState& state) const {
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
    std::vector<std::pair<index_t, double>> ways;  // (registers of a last stage for which items wait, rate of progress)
    const index_t last = search.last_registers();
    for (const index_t registers : {index_t{0}, last})
        if (registers || ways.empty())
            for (const double rate : kRates)
                if (!rules.brief || rate == kRates.back()) ways.emplace_back(registers, rate);
    std::vector<SearchState> results(ways.size());
    const int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));
    parallel_chunks(ways.size(), rules.brief ? 1 : threads, [&](std::uint64_t i, int) {
        results[i] = search.best(search.task(ways[i].first), ways[i].second);
    });
    const auto least = [](const SearchState& a, const SearchState& b) { return a.energy < b.energy; };
    const auto best = std::min_element(results.begin(), results.end(), least);
    return {best->path, ways[best - results.begin()].first != 0};
}

}  // namespace qsim
