// SPDX-License-Identifier: Apache-2.0
// Makes one call repeatedly, with the delays and results of a step, and records the calls in the truth.
#pragma once

#include "script.hpp"
#include "truth.hpp"

#include <map>
#include <time.h>

namespace workload {

// The step's options result, runtime_result, delay_us, block_us and gap_us, applied around each call. If runtime_result
// is set, the driver is not called, and result, delay_us and block_us are ignored.
class Pace {
public:
    explicit Pace(const Step&);
    bool empty() const { return empty_; }
    void before() const;
    void after() const;
    bool failed_in_runtime(int result) const; // true if the runtime failed without calling the driver
    uint64_t slept_ns() const { return delay_ns_ + block_ns_; }

private:
    bool empty_;
    int result_, runtime_result_;
    uint64_t delay_ns_, block_ns_;
    timespec gap_;
    void* arm_result_ = nullptr;
    void* arm_delay_ = nullptr;
    void* arm_block_ = nullptr;
    void* arm_runtime_ = nullptr;
};

// Counts and times of calls per result.
using Results = std::map<int, Tally>;

uint64_t now_ns();

enum class Timed { no, yes };

template<Timed timed = Timed::no, class F>
Results make_calls(const Pace& pace, uint64_t count, F call)
{
    Results results;
    int last = 0;
    Tally run;
    for (uint64_t i = 0; i < count && !stopping(); i++) {
        if (!pace.empty())
            pace.before();
        uint64_t start = timed == Timed::yes ? now_ns() : 0;
        int result = call();
        uint64_t duration = timed == Timed::yes ? now_ns() - start : 0;
        if (result != last) {
            results[last] += run;
            run = {};
            last = result;
        }
        run.count++;
        run.duration_ns += duration;
        if (!pace.empty())
            pace.after();
    }
    results[last] += run;
    return results;
}

// Adds a driver call to the truth, one line per result.
void add_results(const Call&, const Results&, const Pace&);

// Adds runtime calls and their nested driver calls: none for a call that failed in the runtime itself, one for a call
// that the driver failed, and `per_call` for a successful one.
void add_results(const Call&, const Results&, const Pace&, const Call& nested, uint64_t per_call = 1);

// call_of() returns the record of a call by this thread; nested_call() that of the driver call that the runtime makes
// for it. add_results() adds both to the truth, or only the first if `driver_function` is empty.
Call call_of(const std::string& function, const std::string& kind);
Call nested_call(const Call&, const std::string& driver_function);
void add_results(const Call&, const Results&, const Pace&, const std::string& driver_function);

// cudaLaunchKernel_ptsz -> cudaLaunchKernel, _ptsz; _ptds likewise
std::string without_suffix(const std::string& function);
std::string suffix(const std::string& function);
bool is_runtime(const std::string& function);

} // namespace workload
