// SPDX-License-Identifier: Apache-2.0
// Live screen that shows snapshots, reads keys, and requests actions from its owner. The screen has no threads and
// never waits; the owner's event loop watches the screen's descriptors.
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

// Create the screen after the Loop, which handles the signals that end a run. Destroy it when the loop ends, to restore
// the terminal. While the screen exists, nothing else may write to the terminal.
class Screen {
public:
    // Function to call for each action that the screen cannot carry out itself. The function may call show() and
    // message(), and is never called recursively.
    using Requests = std::function<void(const Action&)>;
    using Options = ScreenOptions;

    // Throws Error with a hint if there is no terminal, or if the terminal cannot be used.
    Screen(const Options& options, Requests requests);

    // Shows the current step of a slow start-up. Until started() is called, warnings and typed keys are stored, but a
    // key that quits sends SIGINT at once.
    void starting(std::string what);
    void started(); // call just before the loop runs

    std::vector<int> descriptors() const; // descriptors that the loop must watch
    void ready();                         // call when one of these descriptors is readable
    void show(Snapshot snapshot);         // shows a new interval
    void message(std::string text);       // shows a message; while the screen exists, warn() also calls this

    std::chrono::nanoseconds interval() const { return state_.interval; }
    Preferences chosen() const; // settings that the user has changed with keys

private:
    void act(const Action& action);
    void save(const std::string& name);
    void draw();
    void capture_warnings();

    Options initial_;
    Requests requests_;
    ScreenState state_;
    Snapshot snapshot_; // the shown snapshot; not replaced during a pause

    // Warnings not shown yet, which the destructor prints to stderr. Declared before terminal_, so that it is destroyed
    // after terminal_ has restored the terminal.
    struct EarlyWarnings {
        EarlyWarnings() = default;
        ~EarlyWarnings();
        EarlyWarnings(const EarlyWarnings&) = delete;
        EarlyWarnings& operator=(const EarlyWarnings&) = delete;

        std::vector<std::string> kept;
    } early_;
    Terminal terminal_;
    bool initially_coloured_;
    Canvas canvas_;
    std::optional<TypedAhead> typed_ahead_;
    std::optional<WarningRedirect> warnings_;
    std::optional<WithdrawalRedirect> withdrawals_;
};

} // namespace gpusnoop
