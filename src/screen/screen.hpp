// SPDX-License-Identifier: Apache-2.0
// A live screen: shows snapshots, reads keys, and requests actions from its owner. It has no threads and never waits;
// the owner's loop watches its descriptors.
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

// Create it after the Loop, which handles the signals that end a run. Destroy it as soon as the loop ends, to restore
// the terminal. In between, nothing else may write to the terminal.
class Screen {
public:
    // Called with each action that the screen cannot do itself, never recursively. May call show() and message().
    using Requests = std::function<void(const Action&)>;
    using Options = ScreenOptions;

    // Throws Error, with a hint, if there is no terminal or it cannot be used.
    Screen(const Options& options, Requests requests);

    // Shows the current slow step, before the loop runs. Keys are kept for later, except that a key that quits sends
    // SIGINT. Warnings are kept until started().
    void starting(std::string what);
    void started(); // the loop runs, or is about to

    std::vector<int> descriptors() const; // for the loop to watch
    void ready();                         // call when one of them is readable
    void show(Snapshot snapshot);         // shows a new interval
    void message(std::string text);       // shows a message that would otherwise go to stderr, as warn() now does

    std::chrono::nanoseconds interval() const { return state_.interval; }
    Preferences chosen() const; // settings changed by keys since the start

private:
    void act(const Action& action);
    void save(const std::string& name);
    void draw();
    void capture_warnings();

    Options initial_;
    Requests requests_;
    ScreenState state_;
    Snapshot snapshot_; // the one shown; not replaced during a pause

    // Prints warnings that were never shown to stderr. Declared before terminal_, so destroyed after it is restored.
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
