// SPDX-License-Identifier: Apache-2.0
// Making one call many times, at the pace and with the results a step asks for, and telling the truth about it.
#pragma once

#include "script.hpp"
#include "truth.hpp"

#include <map>
#include <time.h>

namespace workload {

// The step's options result, runtime_result, delay_us and gap_us, applied around each call.
class Pace {
public:
    explicit Pace(const Step&);
    bool idle() const { return idle_; }
    void before() const;
    void after() const;
    bool from_runtime(int result) const; // did the runtime fail by itself?

private:
    bool idle_;
    int result_, runtime_result_;
    uint64_t delay_ns_;
    timespec gap_;
    void* arm_result_ = nullptr;
    void* arm_delay_ = nullptr;
    void* arm_runtime_ = nullptr;
};

bool stopping();

// How often each result came back. Calls with equal results in a row cost one comparison.
using Results = std::map<int, uint64_t>;

template<class F>
Results make_calls(const Pace& pace, uint64_t count, F call)
{
    Results results;
    int last = 0;
    uint64_t run = 0;
    for (uint64_t i = 0; i < count && !stopping(); i++) {
        if (!pace.idle())
            pace.before();
        int result = call();
        if (result != last) {
            results[last] += run;
            run = 0;
            last = result;
        }
        run++;
        if (!pace.idle())
            pace.after();
    }
    results[last] += run;
    return results;
}

// Adds a driver call to the truth, once per result.
void add_results(const Call&, const Results&, const Pace&);

// Adds a runtime call, and the driver calls it led to: one, unless the result is the runtime's own; `per_call` of them
// where the runtime works through a list, and then only up to the first that fails.
void add_results(const Call&, const Results&, const Pace&, const Call& nested, uint64_t per_call = 1);

// cudaLaunchKernel_ptsz -> cudaLaunchKernel
std::string without_suffix(const std::string& function);

} // namespace workload
