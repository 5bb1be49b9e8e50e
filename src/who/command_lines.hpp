// SPDX-License-Identifier: Apache-2.0
// Command lines of processes. They are read in a helper process, because reading another process's memory may hang.
#pragma once

#include "proc/mapped_file.hpp"
#include "reader/reader.hpp"

#include <chrono>
#include <map>
#include <string>

namespace gpusnoop {

class CommandLines {
public:
    explicit CommandLines(WaitBudget* waits = nullptr); // waits: see Reader::Reader()

    // The command line of a running process; empty while unknown. It is read again every few seconds, because programs
    // may change it. Escape it with printable() for output.
    const std::string& of(const ImageId& image);
    // Returns the last known command line of a process that has exited, without asking the helper.
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
