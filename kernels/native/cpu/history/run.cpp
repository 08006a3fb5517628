// cpu/history/run.cpp -- workers with a stack of histories each; one that has none left takes from another.
//
// The history with the fewest shots is followed first, on a copy of the state, so a worker holds at most log2(shots) states.
#include "cpu/history/run.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/helper_thread.hpp"
#include "cpu/history/worker.hpp"

namespace qsim {

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kNodesPerLook = 64;  // nodes between two looks at the clock
constexpr auto kSoloTime = std::chrono::milliseconds(1);    // before helpers start: to start one takes some 50 us
constexpr auto kCheckTime = std::chrono::milliseconds(20);  // between two calls of request.check
constexpr auto kIdleTime = std::chrono::microseconds(20);   // before an idle worker looks for work again

class Run {
  public:
    Run(const HistoryProgram& program, const HistoryRequest& request)
        : request_(request), walk_(program, request), num_workers_(request.shots ? std::max(request.threads, 1) : 1) {
        for (int k = 0; k < num_workers_; ++k) {
            workers_.push_back(std::make_unique<Worker>());
            workers_[k]->visits.resize(program.nodes().size());
            workers_[k]->resets.resize(program.nodes().size());
        }
        idle_ = num_workers_ - 1;  // helpers that have not started have nothing to do
    }

    HistoryResult all() {
        start_ = last_check_ = Clock::now();
        guarded([&] {
            follow(0, walk_.first());
            work(0);
        });
        for (HelperThread& helper : helpers_) helper.join();
        if (failure_) std::rethrow_exception(failure_);
        return walk_.ends.collected(workers_);
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

    bool next_history(int number, History& out) {
        Worker& worker = *workers_[number];
        Share share;
        {
            const std::lock_guard<std::mutex> lock(worker.mutex);
            if (worker.partings.empty()) return false;
            share = walk_.take(worker, worker.partings, worker.partings.size() - 1, out);
        }
        walk_.go_on(worker, out, share);
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
                share = walk_.take(worker, victim.partings, 0, out);
            }
            walk_.go_on(worker, out, share);
            return true;
        }
        return false;
    }

    // Runs `history` to its end, or to where it parts.
    void follow(int number, History history) {
        Worker& worker = *workers_[number];
        while (!failed_ && walk_.advance(worker, history)) {
            if (--worker.nodes_until_look) continue;
            worker.nodes_until_look = kNodesPerLook;
            if (number == 0) look();
        }
    }

    const HistoryRequest& request_;
    HistoryWalk walk_;
    int num_workers_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<HelperThread> helpers_;
    std::atomic<int> idle_{0};  // workers without a history; a run is over when all are
    std::atomic<bool> failed_{false};
    std::exception_ptr failure_;
    Clock::time_point start_, last_check_;
};

}  // namespace

HistoryResult run_histories(const HistoryProgram& program, const HistoryRequest& request) {
    program.finish();
    return Run(program, request).all();
}

}  // namespace qsim
