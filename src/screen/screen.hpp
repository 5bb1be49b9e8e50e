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
    // Called with each action that the screen does not do itself, never from within another call. It may call show()
    // and message().
    using Requests = std::function<void(const Action&)>;
    using Options = ScreenOptions;

    // Throws Error, with a hint, where there is no terminal, or one that cannot be used.
    Screen(const Options& options, Requests requests);

    // Before the loop runs: what takes long, in words. Keys are kept, but one that quits sends SIGINT. Warnings are
    // kept until started().
    void starting(std::string what);
    void started(); // the loop runs, or is about to

    std::vector<int> descriptors() const; // to be watched by the loop
    void ready();                         // one of them is readable
    void show(Snapshot snapshot);         // a new interval
    void message(std::string text);       // what would have gone to stderr; warn() comes here by itself

    std::chrono::nanoseconds interval() const { return state_.interval; }
    Preferences chosen() const; // by keys, since the beginning

private:
    void act(const Action& action);
    void save(const std::string& name);
    void draw();
    void capture_warnings();

    Options initial_;
    Requests requests_;
    ScreenState state_;
    Snapshot snapshot_; // that is shown; stands still during a pause

    // Those that were never shown go to stderr in the end, when terminal_, which stands behind it, is given back.
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
