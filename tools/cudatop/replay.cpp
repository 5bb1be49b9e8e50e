// SPDX-License-Identifier: Apache-2.0
#include "replay.hpp"

#include "batch.hpp"
#include "output/output.hpp"
#include "recording/moments.hpp"
#include "replayed.hpp"
#include "run/arguments.hpp"
#include "run/loop.hpp"
#include "screen/screen.hpp"
#include "util/clock.hpp"
#include "util/error.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <memory>
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

// What is missing from what is shown.
std::vector<std::string> said_of(const Moments& moments)
{
    std::vector<std::string> all;
    const Unread& unread = moments.unread();
    if (unread.damage.cut_off)
        all.emplace_back("the recording is cut off: what was being written is left out");
    if (const uint64_t lines = unread.not_json + unread.damage.long_lines)
        all.push_back(fmt::format("{} lines of the recording are no JSON of cudatop", lines));
    if (unread.other_schema)
        all.push_back(fmt::format("{} lines are of a version whose keys mean something else", unread.other_schema));
    if (moments.left_out())
        all.push_back(fmt::format("there is no room for {} rows of the recording", moments.left_out()));
    if (moments.lost())
        all.push_back(fmt::format("{} events were lost when it was recorded", moments.lost()));
    return all;
}

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

    void run()
    {
        for (const int descriptor : screen_.descriptors())
            loop_.watch(descriptor, [this] { screen_.ready(); });
        loop_.every(50ms, [this] { tick(); });
        screen_.started();
        for (std::string& text : said_of(moments_))
            screen_.message(std::move(text));
        play(true);
        loop_.run();
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
    for (const std::string& text : said_of(moments))
        warn(text);
    for (const Moment& moment : std::span(moments.all()).subspan(from))
        print_text(*output, replayed(moment, columns, {}), settings.arrangement(), options.rows);
    output->flush();
}

// "10:05:30", of the day that the recording begins on where this runs, or as in JSON.
uint64_t time_of(const std::string& text, const Moments& moments)
{
    if (const auto wall_ns = moment_of(text))
        return *wall_ns;
    const uint64_t begin = moments.all().front().wall_ns;
    auto seconds = static_cast<time_t>(begin / second_ns);
    tm local{};
    localtime_r(&seconds, &local);
    int end = 0;
    if (sscanf(text.c_str(), "%2d:%2d:%2d%n", &local.tm_hour, &local.tm_min, &local.tm_sec, &end) != 3 ||
        static_cast<size_t>(end) != text.size())
        throw UsageError(fmt::format("--at takes a time such as 10:05:30, or as JSON has it, not '{}'", text));
    local.tm_isdst = -1;
    uint64_t at = static_cast<uint64_t>(mktime(&local)) * second_ns;
    return at + second_ns < begin ? at + 24 * 60 * minute_ns : at; // past midnight
}

} // namespace

void replay(const Settings& settings, const Options& options, EndingSignals& signals)
{
    const Moments moments(std::span(&settings.replay, 1), "cudatop");
    std::vector<TopColumn> columns = replayed_columns(moments, options.columns, settings.screen);
    const size_t from = settings.replay_at.empty() ? 0 : moments.at(time_of(settings.replay_at, moments));
    if (!settings.screen)
        return print(moments, columns, from, settings, options);
    Screen::Options screen;
    screen.sort = settings.sort;
    screen.ascending = settings.ascending;
    screen.then = usual_order;
    screen.filter = settings.filter;
    screen.tree = settings.tree;
    Player(moments, std::move(columns), from, screen, signals).run();
}

} // namespace gpusnoop::cudatop
