// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include "session.hpp"
#include "symbols.hpp"

namespace workload {

Pace::Pace(const Step& step)
    : result_(static_cast<int>(step.number("result", 0))),
      runtime_result_(static_cast<int>(step.number("runtime_result", 0))), delay_ns_(step.number("delay_us", 0) * 1000)
{
    uint64_t gap_us = step.number("gap_us", 0);
    gap_ = {static_cast<time_t>(gap_us / 1'000'000), static_cast<long>(gap_us % 1'000'000 * 1000)};
    idle_ = !result_ && !runtime_result_ && !delay_ns_ && !gap_us;
    if (result_)
        arm_result_ = symbol("standin_next_result");
    if (delay_ns_)
        arm_delay_ = symbol("standin_next_delay_ns");
    if (runtime_result_)
        arm_runtime_ = runtime_symbol("standin_runtime_next_result");
    if (runtime_result_ && !arm_runtime_)
        wrong(step, "runtime_result needs a form with the stand-in runtime");
}

void Pace::before() const
{
    if (arm_result_)
        call_symbol(arm_result_, result_);
    if (arm_delay_)
        call_symbol(arm_delay_, delay_ns_);
    if (arm_runtime_)
        call_symbol(arm_runtime_, runtime_result_);
}

void Pace::after() const
{
    if (gap_.tv_sec || gap_.tv_nsec)
        nanosleep(&gap_, nullptr);
}

bool Pace::from_runtime(int result) const
{
    if (runtime_result_)
        return result == runtime_result_;
    return result != result_ && (result == standin::insufficient_driver || result == standin::invalid_device_function);
}

void add_results(const Call& call, const Results& results, const Pace&)
{
    bool capturing = call.kind != "setup" && is_capturing(reinterpret_cast<void*>(call.stream));
    for (auto [result, count] : results) {
        Call made = call;
        made.result = result;
        made.recorded = capturing && !result;
        if (made.recorded && !made.nested)
            add_recorded(reinterpret_cast<void*>(call.stream), count * call.kernels);
        add(made, count);
    }
}

void add_results(const Call& call, const Results& results, const Pace& pace, const Call& nested, uint64_t per_call)
{
    add_results(call, results, pace);
    Results reached;
    for (auto [result, count] : results)
        if (!pace.from_runtime(result))
            reached[result] += result ? count : count * per_call;
    add_results(nested, reached, pace);
}

std::string without_suffix(const std::string& function)
{
    return function.ends_with("_ptsz") ? function.substr(0, function.size() - 5) : function;
}

} // namespace workload
