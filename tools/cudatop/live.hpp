// SPDX-License-Identifier: Apache-2.0
// The screen in a run: its timer, its keys, and what would have gone to stderr.
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

// What a row has called, has waited, and holds more, since it was opened.
class SinceOpened {
public:
    // Another row was opened, or none; of whose processes is known with the next snapshot.
    void restart();
    void follow(const std::set<ImageId>& images, const Holdings& holdings);

    // An interval.
    void add(std::span<const CallDelta> calls, std::span<const Waiting::Part> waits, double seconds);

    std::span<const CallDelta> calls() const { return calls_.rows(); }
    std::vector<Waiting::Part> waits() const; // those that a report fell into: their time, and whether they go on
    double seconds() const { return seconds_; }
    int64_t grown_bytes(const Holdings& holdings) const; // memory that is held now, less what was held then
    std::set<int32_t> stacks() const;                    // of all of these, as calls have them

private:
    std::set<ImageId> images_;
    CallSums calls_;
    ByCallKey<Waiting::Part> waits_;
    double seconds_ = 0;
    int64_t held_bytes_ = 0; // when it was opened
};

// By options, and else as keys have chosen before.
Screen::Options screen_options(const Settings& settings, const Options& given);

class Live {
public:
    // requests: asked for all but the end of the run and the interval.
    Live(const Screen::Options& options, Screen::Requests requests);

    void starting(std::string_view what) { screen_.starting(std::string(what)); } // until begin()
    void begin(const Running& running);                                           // the first snapshot is shown
    void show(Snapshot snapshot) { screen_.show(std::move(snapshot)); }
    void message(std::string text) { screen_.message(std::move(text)); }
    Preferences chosen() const { return screen_.chosen(); } // by keys

private:
    void set_interval(std::chrono::nanoseconds interval);

    std::optional<Running> running_; // from begin() on
    Fd timer_;
    Screen screen_;
};

} // namespace gpusnoop::cudatop
