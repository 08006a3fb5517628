// base/parallel.hpp -- runs chunks of independent work on several threads.
// Threads live for one call: nothing is left behind that a fork could break. Work is split in fixed chunks, so results
// do not depend on the number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <system_error>
#include <vector>

#include "base/helper_thread.hpp"

namespace qsim {

// Calls work(chunk, thread) for each chunk in [0, chunks), each once, on at most `threads` threads.
template <class Work>
void parallel_chunks(std::uint64_t chunks, int threads, Work&& work) {
    if (threads > 1 && static_cast<std::uint64_t>(threads) > chunks) threads = static_cast<int>(chunks);
    if (threads <= 1) {
        for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) work(chunk, 0);
        return;
    }
    std::atomic<std::uint64_t> next{0};
    std::exception_ptr failure;
    std::atomic<bool> failed{false};
    auto loop = [&](int thread) {
        try {
            for (std::uint64_t chunk; !failed && (chunk = next.fetch_add(1)) < chunks;) work(chunk, thread);
        } catch (...) {
            if (!failed.exchange(true)) failure = std::current_exception();
        }
    };
    std::vector<HelperThread> helpers;
    helpers.reserve(threads - 1);
    for (int thread = 1; thread < threads; ++thread) {
        try {
            helpers.emplace_back([&loop, thread] { loop(thread); });
        } catch (const std::system_error&) {
            break;  // fewer threads than asked for: the others take the chunks
        }
    }
    loop(0);
    for (auto& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace qsim
