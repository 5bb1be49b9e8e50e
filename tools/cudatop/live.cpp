// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/live.hpp"

#include "base/error.hpp"
#include "base/loop.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <ranges>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop::cudatop {

namespace {

int64_t held_by(const std::set<ImageId>& images, const Holdings& holdings)
{
    int64_t bytes = 0;
    for (const auto& [row, amount] : holdings.now())
        if (images.contains(row.image) && is_memory(row.memory.holding))
            bytes += amount.bytes;
    return bytes;
}

} // namespace

void SinceOpened::restart()
{
    images_.clear();
    calls_.clear();
    waits_.clear();
    seconds_ = 0;
}

void SinceOpened::follow(const std::set<ImageId>& images, const Holdings& holdings)
{
    if (images_.empty())
        held_bytes_ = held_by(images, holdings);
    images_ = images;
}

int64_t SinceOpened::grown_bytes(const Holdings& holdings) const
{
    return held_by(images_, holdings) - held_bytes_;
}

void SinceOpened::add(std::span<const CallDelta> calls, std::span<const Waiting::Part> waits, double seconds)
{
    if (images_.empty())
        return;
    seconds_ += seconds;
    for (const CallDelta& delta : calls)
        if (images_.contains(delta.key.image))
            calls_.add(delta);
    for (auto& [key, sum] : waits_)
        sum.waiting = false; // set again if the wait is still unfinished in this interval
    for (const Waiting::Part& part : waits) {
        if (!images_.contains(part.key.image))
            continue;
        const auto [found, is_new] = waits_.try_emplace(part.key, part);
        if (is_new)
            continue;
        Waiting::Part& sum = found->second;
        sum.elapsed_ns = std::max(sum.elapsed_ns, part.elapsed_ns);
        sum.new_ns += part.new_ns;
        sum.waiting = part.waiting;
        sum.ended |= part.ended;
        sum.earlier |= part.earlier;
    }
}

std::vector<Waiting::Part> SinceOpened::waits() const
{
    std::vector<Waiting::Part> all;
    std::ranges::copy(std::views::values(waits_), std::back_inserter(all));
    return all;
}

std::set<int32_t> SinceOpened::stacks() const
{
    std::set<int32_t> all;
    for (const CallDelta& delta : calls())
        all.insert(delta.key.stack);
    for (const auto& [key, sum] : waits_)
        all.insert(key.stack);
    return all;
}

Screen::Options screen_options(const Settings& settings, const Options& given)
{
    const Preferences& preferences = settings.preferences;
    Screen::Options options;
    options.sort = settings.sort;
    options.ascending = settings.ascending;
    options.then = usual_order;
    options.filter = settings.filter;
    options.tree = settings.tree;
    options.interval = given.interval.value_or(preferences.interval.value_or(std::chrono::seconds(1)));
    if (given.columns.empty())
        options.columns = preferences.columns;
    options.mouse = preferences.mouse.value_or(true);
    options.colours = preferences.colours;
    options.starting = "Starting ...";
    return options;
}

Live::Live(const Screen::Options& options, Screen::Requests requests)
    : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      screen_(options, [this, requests = std::move(requests)](const Action& action) {
          if (action.kind == Action::quit)
              running_->loop.stop();
          else if (action.kind == Action::interval)
              set_interval(screen_.interval());
          else
              requests(action);
      })
{
    if (!timer_)
        throw Error("a timer cannot be created: " + errno_text(errno));
}

void Live::begin(const Running& running)
{
    running_.emplace(running);
    for (const int descriptor : screen_.descriptors())
        running_->loop.watch(descriptor, [this] { screen_.ready(); });
    running_->loop.watch(timer_.get(), [this] {
        uint64_t expirations = 0;
        if (::read(timer_.get(), &expirations, sizeof(expirations)) > 0)
            running_->report();
    });
    set_interval(screen_.interval());
    screen_.started();
}

void Live::set_interval(std::chrono::nanoseconds interval)
{
    const timespec period{.tv_sec = interval.count() / 1'000'000'000, .tv_nsec = interval.count() % 1'000'000'000};
    const itimerspec times{.it_interval = period, .it_value = period};
    timerfd_settime(timer_.get(), 0, &times, nullptr);
}

} // namespace gpusnoop::cudatop
