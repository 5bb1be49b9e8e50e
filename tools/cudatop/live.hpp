// SPDX-License-Identifier: Apache-2.0
// The screen in a run: its timer, its keys, and what would have gone to stderr.
#pragma once

#include "base/error.hpp"
#include "base/fd.hpp"
#include "run/tool.hpp"
#include "screen/screen.hpp"
#include "tools/cudatop/columns.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop::cudatop {

// Keeps warnings until there is somebody to show them to; those that nobody took go to stderr in the end.
class Warnings {
public:
    Warnings() = default;
    ~Warnings();
    Warnings(const Warnings&) = delete;
    Warnings& operator=(const Warnings&) = delete;

    std::vector<std::string> take();

private:
    std::vector<std::string> held_;
    std::optional<WarningsTo> to_{std::in_place, [this](std::string message) { held_.push_back(std::move(message)); }};
};

// By options, and else as keys have chosen before.
Screen::Options screen_options(const Settings& settings, const Options& given);

class Live {
public:
    struct Requests {
        std::function<void(std::string_view)> by;       // what rows are to stand for
        std::function<void(const std::string&)> within; // the row of this id, by process; empty: as before
        std::function<void(const std::string&)> open;   // the row of this id; empty: none
        std::function<std::string(const RowProcess&, const std::string&, int)> signal; // as in Screen::Requests
        std::function<void()> refresh;                                                 // show the last interval again
    };
    Live(const Settings& settings, const Options& given, Requests requests)
        : Live(screen_options(settings, given), std::move(requests))
    {}

    void starting(std::string_view what) { screen_.starting(std::string(what)); } // until begin()
    void begin(const Running& running);                                           // the first snapshot is shown
    void show(Snapshot snapshot) { screen_.show(std::move(snapshot)); }
    Preferences chosen() const { return screen_.chosen(); } // by keys

private:
    Live(const Screen::Options& options, Requests requests);
    void set_interval(std::chrono::nanoseconds interval);

    std::optional<Running> running_; // from begin() on
    std::chrono::nanoseconds interval_;
    Fd timer_;
    Screen screen_;
};

} // namespace gpusnoop::cudatop
