// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include "session.hpp"
#include "symbols.hpp"

namespace workload {

Pace::Pace(const Step& step)
    : result_(static_cast<int>(step.number("result", 0))),
      runtime_result_(static_cast<int>(step.number("runtime_result", 0))), delay_ns_(step.number("delay_us", 0) * 1000),
      block_ns_(step.number("block_us", 0) * 1000)
{
    if (runtime_result_)
        result_ = 0, delay_ns_ = block_ns_ = 0;
    uint64_t gap_us = step.number("gap_us", 0);
    gap_ = {static_cast<time_t>(gap_us / 1'000'000), static_cast<long>(gap_us % 1'000'000 * 1000)};
    empty_ = !result_ && !runtime_result_ && !delay_ns_ && !block_ns_ && !gap_us;
    if (result_)
        arm_result_ = symbol("standin_next_result");
    if (delay_ns_)
        arm_delay_ = symbol("standin_next_delay_ns");
    if (block_ns_)
        arm_block_ = symbol("standin_next_block_ns");
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
    if (arm_block_)
        call_symbol(arm_block_, block_ns_);
    if (arm_runtime_)
        call_symbol(arm_runtime_, runtime_result_);
}

void Pace::after() const
{
    if (gap_.tv_sec || gap_.tv_nsec)
        nanosleep(&gap_, nullptr);
}

bool Pace::failed_in_runtime(int result) const
{
    if (runtime_result_)
        return result == runtime_result_;
    return result != result_ && (result == standin::insufficient_driver || result == standin::invalid_device_function);
}

uint64_t now_ns()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

void add_results(const Call& call, const Results& results, const Pace& pace)
{
    bool capturing = call.kind != "setup" && driver_is_capturing(reinterpret_cast<void*>(call.stream));
    for (auto [result, tally] : results) {
        Call made = call;
        made.result = result;
        made.recorded = capturing && !result;
        if (call.layer == "driver" || !pace.failed_in_runtime(result))
            tally.slept_ns = tally.count * pace.slept_ns();
        add(made, tally);
    }
}

void add_results(const Call& call, const Results& results, const Pace& pace, const Call& nested, uint64_t per_call)
{
    add_results(call, results, pace);
    Results reached;
    for (auto [result, tally] : results)
        if (!pace.failed_in_runtime(result)) {
            tally.count = result ? tally.count : tally.count * per_call;
            reached[result] += tally;
        }
    add_results(nested, reached, pace);
}

Call call_of(const std::string& function, const std::string& kind)
{
    Call call;
    call.layer = is_runtime(function) ? "runtime" : "driver";
    call.function = function;
    call.kind = kind;
    call.device = device();
    return call;
}

Call nested_call(const Call& call, const std::string& driver_function)
{
    Call nested = call;
    nested.layer = "driver";
    nested.nested = true;
    nested.function = driver_function + suffix(call.function);
    return nested;
}

void add_results(const Call& call, const Results& results, const Pace& pace, const std::string& driver_function)
{
    if (driver_function.empty())
        return add_results(call, results, pace);
    add_results(call, results, pace, nested_call(call, driver_function));
}

std::string suffix(const std::string& function)
{
    for (const char* known : {"_ptsz", "_ptds"})
        if (function.ends_with(known))
            return known;
    return {};
}

std::string without_suffix(const std::string& function)
{
    return function.substr(0, function.size() - suffix(function).size());
}

bool is_runtime(const std::string& function)
{
    return function.starts_with("cuda") || function.starts_with("__cuda");
}

} // namespace workload
