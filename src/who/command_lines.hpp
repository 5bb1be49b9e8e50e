// SPDX-License-Identifier: Apache-2.0
// command_line() of processes, by a helper: what it reads is the process' own memory, which may hang.
#pragma once

#include "proc/mapped_file.hpp"
#include "reader/reader.hpp"

#include <chrono>
#include <map>
#include <string>

namespace gpusnoop {

class CommandLines {
public:
    explicit CommandLines(WaitBudget* waits = nullptr); // see Reader

    // Of a process that runs: empty where it is not known, or not known yet; no older than some seconds, for programs
    // change theirs. Show it with printable().
    const std::string& of(const ImageId& image);
    // As far as it is known, without asking: of one that has ended.
    const std::string& last_known(const ImageId& image) const;

    void forget(const ImageId& image) { known_.erase(image); }

private:
    using Clock = std::chrono::steady_clock;
    struct Known {
        std::string text;
        Clock::time_point asked{};
    };

    bool apply(const Message& message);

    std::map<ImageId, Known> known_;
    Reader reader_;
};

} // namespace gpusnoop
