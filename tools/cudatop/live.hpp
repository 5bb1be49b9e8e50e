// SPDX-License-Identifier: Apache-2.0
// The screen of a live run, with its timer and keys, and the counts since a row was opened.
#pragma once

#include "base/fd.hpp"
#include "rows/call_sums.hpp"
#include "rows/holdings.hpp"
#include "run/tool.hpp"
#include "screen/screen.hpp"
#include "tools/cudasync/waits.hpp"
#include "tools/cudatop/columns.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop::cudatop {

// Calls, waits and memory growth of a row since its page was opened.
class SinceOpened {
public:
    // Clears the counts. Called when a row is opened or closed. At the next snapshot, follow() sets the processes of
    // the opened row.
    void restart();
    void follow(const std::set<ImageId>& images, const Holdings& holdings);

    // Adds the calls and waits of an interval.
    void add(std::span<const CallDelta> calls, std::span<const Waiting::Part> waits, double seconds);

    std::span<const CallDelta> calls() const { return calls_.rows(); }
    // Waits that were unfinished at the end of at least one interval, with their time summed over all intervals.
    std::vector<Waiting::Part> waits() const;
    double seconds() const { return seconds_; }
    int64_t grown_bytes(const Holdings& holdings) const; // memory held now minus memory held when the page was opened
    std::set<int32_t> stacks() const;                    // ids of the stacks of these calls and waits, as in call_key

private:
    std::set<ImageId> images_;
    CallSums calls_;
    ByCallKey<Waiting::Part> waits_;
    double seconds_ = 0;
    int64_t held_bytes_ = 0; // memory held when the page was opened
};

// Options take precedence over saved preferences.
Screen::Options screen_options(const Settings& settings, const Options& given);

class Live {
public:
    // requests: called for each action of the user, except quitting and changing the interval.
    Live(const Screen::Options& options, Screen::Requests requests);

    void starting(std::string_view step) { screen_.starting(std::string(step)); } // call only before begin()
    void begin(const Running& running);                                           // call after the first snapshot
    void show(Snapshot snapshot) { screen_.show(std::move(snapshot)); }
    void message(std::string text) { screen_.message(std::move(text)); }
    Preferences chosen() const { return screen_.chosen(); } // settings that the user changed

private:
    void set_interval(std::chrono::nanoseconds interval);

    std::optional<Running> running_; // set by begin()
    Fd timer_;
    Screen screen_;
};

} // namespace gpusnoop::cudatop
