// SPDX-License-Identifier: Apache-2.0
#include "spin.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <time.h>

namespace standin {

std::atomic<bool> may_spin{false};

namespace {

using Clock = std::chrono::steady_clock;

std::mutex lock; // protects both variables
auto& durations = *new std::map<const void*, std::chrono::microseconds>;
Clock::time_point busy_until;

} // namespace

void note_kernel(const void* function, const std::string& name)
{
    if (!name.starts_with("spin_us_"))
        return;
    std::lock_guard hold(lock);
    durations[function] = std::chrono::microseconds(strtoul(name.c_str() + 8, nullptr, 10));
    may_spin = true;
}

void spin(const void* function)
{
    std::lock_guard hold(lock);
    if (auto found = durations.find(function); found != durations.end())
        busy_until = std::max(busy_until, Clock::now()) + found->second;
}

void wait_until_idle()
{
    if (!may_spin)
        return;
    std::unique_lock hold(lock);
    auto left = busy_until - Clock::now();
    hold.unlock();
    if (left <= left.zero())
        return;
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    timespec t = {seconds.count(), std::chrono::nanoseconds(left - seconds).count()};
    nanosleep(&t, nullptr);
}

} // namespace standin
