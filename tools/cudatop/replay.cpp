// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/replay.hpp"

#include "base/clock.hpp"
#include "base/ending_signals.hpp"
#include "base/error.hpp"
#include "base/loop.hpp"
#include "output/moments.hpp"
#include "rows/output.hpp"
#include "run/arguments.hpp"
#include "screen/screen.hpp"
#include "tools/cudatop/batch.hpp"
#include "tools/cudatop/live.hpp"
#include "tools/cudatop/replayed.hpp"
#include "tools/cudatop/verdicts.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop::cudatop {
namespace {

using namespace std::chrono_literals;

constexpr int fastest = 6; // 64 times
constexpr uint64_t second_ns = 1'000'000'000, minute_ns = 60 * second_ns;
constexpr uint64_t pause_ns = 10 * second_ns; // of the recording: what is longer is not waited for

// The screen, with a clock of its own.
class Player {
public:
    Player(const Moments& moments, std::vector<TopColumn> columns, size_t at, const Screen::Options& options,
           EndingSignals& signals)
        : moments_(moments), columns_(std::move(columns)), at_(at), loop_(signals),
          screen_(options, {.quit = [this] { loop_.stop(); },
                            .interval = {},
                            .by = {},
                            .within = {},
                            .open =
                                [this](const std::string& id) {
                                    open_ = id;
                                    show(false);
                                },
                            .signal = {},
                            .refresh = [this] { show(false); },
                            .play = [this] { play(!playing_); },
                            .speed =
                                [this](int faster) {
                                    doublings_ = std::clamp(doublings_ + faster, 0, fastest);
                                    play(playing_);
                                },
                            .step = [this](int far) { go(static_cast<int64_t>(at_) + far); },
                            .leap = [this](int minutes) { leap(minutes); }})
    {}

    Preferences run()
    {
        for (const int descriptor : screen_.descriptors())
            loop_.watch(descriptor, [this] { screen_.ready(); });
        loop_.every(50ms, [this] { tick(); });
        screen_.started();
        for (std::string& text : moments_.missing())
            screen_.message(std::move(text));
        play(true);
        loop_.run();
        return screen_.chosen();
    }

private:
    const std::vector<Moment>& all() const { return moments_.all(); }
    bool is_last() const { return at_ + 1 >= all().size(); }

    // From the moment that is shown on.
    void play(bool on)
    {
        playing_ = on && !is_last();
        since_ns_ = clock_ns(CLOCK_MONOTONIC);
        from_ns_ = all()[at_].wall_ns;
        show(false);
    }

    void tick()
    {
        if (!playing_)
            return;
        const uint64_t now = from_ns_ + ((clock_ns(CLOCK_MONOTONIC) - since_ns_) << doublings_);
        const size_t before = at_;
        while (!is_last() && all()[at_ + 1].wall_ns <= now)
            at_++;
        if (!is_last() && at_ == before && all()[at_ + 1].wall_ns - all()[at_].wall_ns > pause_ns) {
            at_++;
            return play(true);
        }
        if (is_last())
            playing_ = false;
        if (at_ != before || !playing_)
            show(false);
    }

    void go(int64_t to)
    {
        const auto before = static_cast<int64_t>(at_);
        at_ = static_cast<size_t>(std::clamp<int64_t>(to, 0, static_cast<int64_t>(all().size()) - 1));
        playing_ = false;
        show(static_cast<int64_t>(at_) < before);
    }

    void leap(int minutes)
    {
        const uint64_t now = all()[at_].wall_ns, far = minute_ns * static_cast<uint64_t>(std::abs(minutes));
        go(static_cast<int64_t>(moments_.at(minutes > 0 ? now + far : now - std::min(now, far))));
    }

    void show(bool leaps)
    {
        Snapshot snapshot = replayed(all()[at_], columns_, open_);
        const RunOf& run = moments_.run_of(all()[at_]);
        snapshot.replayed = fmt::format("REPLAY {}{}/{} {}", run.host.empty() ? "" : run.host + " ", at_ + 1,
                                        all().size(), playing_ ? fmt::format("{}x", 1 << doublings_) : "stopped");
        snapshot.leaps = leaps;
        screen_.show(std::move(snapshot));
    }

    const Moments& moments_;
    std::vector<TopColumn> columns_;
    size_t at_;
    std::string open_;
    bool playing_ = false;
    int doublings_ = 0;
    uint64_t since_ns_ = 0; // CLOCK_MONOTONIC, when it began to play
    uint64_t from_ns_ = 0;  // which moment of the recording that was
    Loop loop_;
    Screen screen_;
};

void print(const Moments& moments, const std::vector<TopColumn>& columns, size_t from, const Settings& settings,
           const Options& options)
{
    const std::unique_ptr<Output> output = make_text_output(options.timestamps);
    for (const std::string& text : moments.missing())
        warn(text);
    for (const Moment& moment : std::span(moments.all()).subspan(from)) {
        const Snapshot snapshot = replayed(moment, columns, {});
        print_text(*output, snapshot, settings.arrangement(), options.rows);
        print_verdicts(*output, replayed_verdicts(moment), snapshot);
        output->end_report([] { return std::string("no use of a GPU was recorded"); }, moment.wall_ns);
    }
    output->flush();
}

} // namespace

Preferences replay(const Settings& settings, const Options& options, EndingSignals& signals)
{
    std::optional<EndAtOnce> until_the_screen_is_shown(std::in_place);
    const Moments moments(std::span(&options.replay, 1), "cudatop");
    std::vector<TopColumn> columns = replayed_columns(moments, options.columns, settings.screen);
    const size_t from = moments.at(options.replay_at);
    if (!settings.screen) {
        print(moments, columns, from, settings, options);
        return {};
    }
    Screen::Options screen = screen_options(settings, options);
    screen.starting.clear(); // there is nothing to wait for
    until_the_screen_is_shown.reset();
    return Player(moments, std::move(columns), from, screen, signals).run();
}

} // namespace gpusnoop::cudatop
