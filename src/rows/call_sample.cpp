// SPDX-License-Identifier: Apache-2.0
#include "rows/call_sample.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace gpusnoop {
namespace {

constexpr size_t max_windows = 32;  // the error is estimated from at most this many windows
constexpr size_t min_windows = 4;   // with fewer windows, the error is not estimated
constexpr double cost_error = 0.35; // relative error of the measured cost of a probe

} // namespace

void CallSample::close(uint64_t work_ns, uint64_t probes_ns)
{
    if (!opened_ns_)
        return;
    current_.work_ns = work_ns - std::min(*opened_ns_, work_ns);
    opened_ns_.reset();
    if (!current_.work_ns && !current_.calls)
        return;
    traced_ns_ += current_.work_ns;
    probes_ns_ += probes_ns;
    windows_.push_back(std::exchange(current_, {}));
    windows_since_drain_++;
    if (windows_.size() > max_windows)
        windows_.pop_front();
}

void CallSample::add(const CallDelta& delta)
{
    current_.calls += delta[CALL_COUNT];
    const auto [place, is_new] = counted_.try_emplace(delta.key, delta);
    if (!is_new)
        gpusnoop::add(place->second, delta);
}

// Error of the estimates in percent. Combines the sampling error with the error of the measured probe cost. The
// sampling error (95% confidence) follows from the variation of call rates among windows, and from the share of CPU
// time that windows cover.
std::optional<double> CallSample::error() const
{
    if (windows_.size() < min_windows || !windows_since_drain_)
        return std::nullopt;
    const auto total =
        std::accumulate(windows_.begin(), windows_.end(), Window{}, [](Window sum, const Window& window) {
            return Window{sum.work_ns + window.work_ns, sum.calls + window.calls};
        });
    if (!total.calls || !total.work_ns)
        return std::nullopt;
    const double mean = static_cast<double>(total.calls) / static_cast<double>(total.work_ns);
    double squares = 0;
    for (const Window& window : windows_) {
        const double off = static_cast<double>(window.calls) - mean * static_cast<double>(window.work_ns);
        squares += off * off;
    }
    const auto n = static_cast<double>(windows_.size());
    const double window_deviation = std::sqrt(squares / (n - 1)) / (static_cast<double>(total.calls) / n);
    const double unseen = 1 - std::min(accuracy_.percent / 100, 1.0);
    const double sampling_error =
        1.96 * window_deviation * std::sqrt(unseen / static_cast<double>(windows_since_drain_));
    const double probe_error = cost_error * static_cast<double>(probes_ns_) / static_cast<double>(traced_ns_);
    return 100 * std::hypot(sampling_error, probe_error);
}

std::vector<CallDelta> CallSample::drain_scaled(double factor)
{
    std::vector<CallDelta> all;
    for (auto& [key, delta] : std::exchange(counted_, {})) {
        all.push_back(delta);
        scale(all.back(), factor);
    }
    return all;
}

std::vector<CallDelta> CallSample::drain(uint64_t work_ns)
{
    if (!traced_ns_)
        return {};
    const auto traced = static_cast<double>(traced_ns_);
    const auto whole = std::max(static_cast<double>(work_ns - std::min(since_ns_, work_ns)), traced);
    accuracy_.percent = 100 * traced / whole;
    accuracy_.error = error();
    traced_ns_ = probes_ns_ = 0;
    windows_since_drain_ = 0;
    since_ns_ = work_ns;
    return drain_scaled(whole / traced);
}

std::vector<CallDelta> CallSample::drain_last(uint64_t work_ns)
{
    return traced_ns_ ? drain(work_ns) : drain_scaled(1);
}

} // namespace gpusnoop
