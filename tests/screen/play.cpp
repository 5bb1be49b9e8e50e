// SPDX-License-Identifier: Apache-2.0
// Screen with the snapshots of scene.hpp, in a real event loop:
//
//     play [--rows N] [--gpus N] [--every SECONDS] [--crash SIGNAL|fault|overflow|terminate|exit|warn]
//
// With --crash, it crashes when the row "1000" is opened. Requests are logged to the file $PLAY_LOG, one per line.
#include "base/error.hpp"
#include "base/loop.hpp"
#include "scene.hpp"
#include "screen/screen.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <string_view>

using namespace gpusnoop;

namespace {

struct Settings {
    scene::Cast cast;
    double every = 1;
    std::string crash;
};

Settings parse(int argc, char** argv)
{
    Settings settings;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view option = argv[i];
        const std::string value = argv[i + 1];
        if (option == "--rows")
            settings.cast.rows = std::stoul(value);
        else if (option == "--gpus")
            settings.cast.gpus = std::stoul(value);
        else if (option == "--every")
            settings.every = std::stod(value);
        else if (option == "--crash")
            settings.crash = value;
    }
    return settings;
}

void log(std::string_view line)
{
    if (const char* path = std::getenv("PLAY_LOG"))
        if (FILE* file = std::fopen(path, "ae")) {
            fmt::print(file, "{}\n", line);
            std::fclose(file);
        }
}

uint64_t overflow(uint64_t depth) // NOLINT(misc-no-recursion): overflows the stack on purpose
{
    volatile char room[4096];
    room[0] = static_cast<char>(depth);
    return (depth < UINT64_MAX ? overflow(depth + 1) : 0) + static_cast<uint64_t>(room[0]);
}

void crash(const std::string& how)
{
    if (how.empty())
        return;
    if (how == "exit")
        std::exit(3);
    if (how == "warn")
        return warn("a \x1b[2Jwarning of the library");
    if (how == "terminate")
        std::terminate();
    if (how == "overflow")
        log(fmt::format("{}", overflow(0)));
    if (how == "fault")
        *static_cast<volatile int*>(nullptr) = 1; // NOLINT
    raise(std::stoi(how));
}

class Play {
public:
    explicit Play(const Settings& settings) : settings_(settings)
    {
        ScreenOptions options;
        options.sort = "launches_per_second";
        screen_.emplace(options, [this](const Action& action) { act(action); });
        for (int fd : screen_->descriptors())
            loop_.watch(fd, [this] { screen_->ready(); });
        const auto period = std::chrono::duration<double>(settings_.every);
        loop_.every(std::chrono::duration_cast<std::chrono::nanoseconds>(period), [this] {
            ++interval_;
            show();
        });
        show();
    }

    void run()
    {
        loop_.run();
        screen_.reset();
        std::puts("the screen has ended");
    }

private:
    void act(const Action& action)
    {
        switch (action.kind) {
        case Action::quit:
            log("quit");
            return loop_.stop();
        case Action::interval:
            return log(fmt::format("interval {}", screen_->interval().count()));
        case Action::by:
            log(fmt::format("by {}", action.text));
            by_ = action.text;
            return;
        case Action::open:
            log(fmt::format("open {}", action.text));
            open_ = action.text;
            if (open_ == "1000")
                crash(settings_.crash);
            return;
        case Action::signal:
            return screen_->message("no such process");
        case Action::refresh:
            return show();
        default:
            return;
        }
    }

    void show()
    {
        Snapshot snapshot = scene::snapshot(settings_.cast, interval_);
        snapshot.by = by_;
        if (!open_.empty()) {
            snapshot.detail = scene::detail(open_, interval_);
            snapshot.detail_of = open_;
        }
        if (interval_ == 1)
            screen_->message("a warning with \x1b[2J in it");
        screen_->show(std::move(snapshot));
    }

    Settings settings_;
    EndingSignals signals_;
    Loop loop_{signals_};
    std::optional<Screen> screen_;
    uint64_t interval_ = 0;
    std::string by_ = "pid";
    std::string open_;
};

} // namespace

int main(int argc, char** argv)
{
    set_tool_name("play");
    try {
        Play(parse(argc, argv)).run();
    } catch (const Error& error) {
        warn(error.what());
        fmt::print(stderr, "hint: {}\n", error.hint());
        return 1;
    }
    return 0;
}
