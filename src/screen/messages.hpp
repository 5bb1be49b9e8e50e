// SPDX-License-Identifier: Apache-2.0
// What would have gone to stderr, shown for a while each and kept to be read later.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace gpusnoop {

class Messages {
public:
    struct Message {
        std::string text;
        double until = 0; // when the next one takes its place
        size_t times = 1; // in a row
    };

    // now: seconds of a clock that never goes back.
    void add(std::string text, double now);
    // It is shown no longer; those behind it come sooner.
    void withdraw(std::string_view text, double now);
    const Message* current(double now) const; // the one to be shown now; none: nullptr
    const std::deque<Message>& all() const { return all_; }

private:
    std::deque<Message> all_;
};

} // namespace gpusnoop
