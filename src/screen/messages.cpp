// SPDX-License-Identifier: Apache-2.0
#include "screen/messages.hpp"

#include <algorithm>

namespace gpusnoop {

void Messages::add(std::string text, double now)
{
    constexpr size_t kept = 200;
    constexpr double shown = 5, shown_in_a_hurry = 1; // seconds
    constexpr double longest_queue = 20;

    const double start = all_.empty() ? now : std::max(now, all_.back().until);
    if (!all_.empty() && all_.back().text == text) {
        ++all_.back().times;
        all_.back().until = std::max(all_.back().until, now + shown);
        return;
    }
    if (all_.size() == kept)
        all_.pop_front();
    const bool hurry = start > now + longest_queue;
    all_.push_back({std::move(text), start + (hurry ? shown_in_a_hurry : shown), 1});
}

void Messages::withdraw(std::string_view text, double now)
{
    for (size_t i = all_.size(); i-- > 0 && all_[i].until > now;) {
        if (all_[i].text != text)
            continue;
        const double begin = i ? std::max(now, all_[i - 1].until) : now;
        const double freed = all_[i].until - begin;
        std::for_each(all_.begin() + static_cast<ptrdiff_t>(i), all_.end(),
                      [freed](Message& message) { message.until -= freed; });
    }
}

const Messages::Message* Messages::current(double now) const
{
    auto found = std::ranges::upper_bound(all_, now, {}, &Message::until);
    return found == all_.end() ? nullptr : &*found;
}

} // namespace gpusnoop
