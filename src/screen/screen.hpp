// SPDX-License-Identifier: Apache-2.0
// A live screen: shows snapshots, reads keys, asks for what they want. Without threads and without waiting; the owner's
// loop watches its descriptors.
#pragma once

#include "base/error.hpp"
#include "base/withdrawals.hpp"
#include "screen/keys.hpp"
#include "screen/screen_state.hpp"
#include "screen/terminal.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// To be made after the Loop, which takes the signals that end a run, and to be destroyed as soon as the loop ends, for
// the terminal is given back then. Until then nothing else may write to it.
class Screen {
public:
    // What the user asks for. None is called from within another; each may call show() and message(). Those that are
    // not set are not called.
    struct Requests {
        std::function<void()> quit; // also when the terminal has gone
        std::function<void(std::chrono::nanoseconds)> interval;
        std::function<void(std::string_view)> by;              // what rows are to stand for
        std::function<void(const std::string& row_id)> within; // whose processes rows are to be; empty: all as before
        std::function<void(const std::string& row_id)> open;   // empty: closed
        std::function<std::string(const RowProcess&, const std::string& name, int number)> signal; // what came of it
        std::function<void()> refresh; // a snapshot now, if there can be one
        // Of snapshots that are of a recording.
        std::function<void()> play = {};     // goes on, or stops
        std::function<void(int)> speed = {}; // twice as fast, or half
        std::function<void(int moments)> step = {};
        std::function<void(int minutes)> leap = {};
    };
    using Options = ScreenOptions;

    // Throws Error, with a hint, where there is no terminal, or one that cannot be used.
    Screen(const Options& options, Requests requests);

    // Before the loop runs: what takes long, in words. Keys are kept, but one that quits sends SIGINT. Warnings are not
    // the screen's yet.
    void starting(std::string what);
    void started(); // the loop runs, or is about to

    std::vector<int> descriptors() const; // to be watched by the loop
    void ready();                         // one of them is readable
    void show(Snapshot snapshot);         // a new interval
    void message(std::string text);       // what would have gone to stderr; warn() comes here by itself

    Preferences chosen() const; // by keys, since the beginning

private:
    void act(const Action& action);
    void save(const std::string& name);
    void draw();
    void take_warnings();

    Options at_first_;
    Requests requests_;
    ScreenState state_;
    Snapshot snapshot_; // that is shown; stands still during a pause
    Terminal terminal_;
    bool coloured_at_first_;
    Canvas canvas_;
    std::optional<TypedAhead> typed_ahead_;
    std::optional<WarningsTo> warnings_;
    std::optional<WithdrawalsTo> withdrawals_;
};

} // namespace gpusnoop
