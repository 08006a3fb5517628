// base/helper_thread.hpp -- a thread that starts on another core than its creator's.
//
// Left to itself Linux often queues a new thread behind its creator, while another core idles, and moves it milliseconds later:
// a small state's pass is over by then.
#pragma once

#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#if defined(__GLIBC__)
#include <pthread.h>
#include <sched.h>
#endif

namespace qsim {

#if defined(__GLIBC__)

class HelperThread {
  public:
    // Throws std::system_error where the system has no thread to give.
    explicit HelperThread(std::function<void()> work) : work_(std::make_unique<std::function<void()>>(std::move(work))) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        cpu_set_t cores;
        const int own = sched_getcpu();
        if (own >= 0 && sched_getaffinity(0, sizeof cores, &cores) == 0) {
            CPU_CLR(own, &cores);
            if (CPU_COUNT(&cores) > 0) pthread_attr_setaffinity_np(&attributes, sizeof cores, &cores);
        }
        const int error = pthread_create(&thread_, &attributes, &HelperThread::run, work_.get());
        pthread_attr_destroy(&attributes);
        if (error) throw std::system_error(error, std::generic_category());
    }
    void join() { pthread_join(thread_, nullptr); }

  private:
    static void* run(void* work) {
        (*static_cast<std::function<void()>*>(work))();
        return nullptr;
    }

    std::unique_ptr<std::function<void()>> work_;
    pthread_t thread_{};
};

#else

using HelperThread = std::thread;

#endif

}  // namespace qsim
