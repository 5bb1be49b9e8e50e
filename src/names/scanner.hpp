// SPDX-License-Identifier: Apache-2.0
// Scans of files for registrations of kernels. The tracing thread cannot wait for a library of a gigabyte on a slow
// disk, and the file is hostile, so a helper scans it without privileges, with little time, and its answer is checked.
#pragma once

#include "base/fd.hpp"
#include "names/registrations.hpp"
#include "reader/parts.hpp"
#include "reader/reader.hpp"

#include <optional>
#include <sys/types.h>

namespace gpusnoop {

// One scan at a time.
class Scanner {
public:
    Scanner();

    // Files of the process are not scanned any more.
    bool is_blocked(pid_t about) { return reader_.is_blocked(about); }
    // about: a process that maps the file. Returns false if no helper takes it now.
    bool begin(pid_t about, const Fd& file);
    // True once the scan has ended; it is ended if it takes too long. Never waits.
    bool ended();
    // The answer, once that is so; nullopt if there is none.
    const std::optional<Registrations>& answer() const { return answer_; }

private:
    bool is_busy_ = false;
    std::optional<Registrations> answer_;
    JoinedParts parts_;
    Reader reader_;
};

} // namespace gpusnoop
