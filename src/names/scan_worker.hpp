// SPDX-License-Identifier: Apache-2.0
// Scans a file in a process of its own. The tracing thread cannot wait for a library of a gigabyte on a slow disk, and
// the file is hostile: what it might do to the decoder, it does to a process without privileges, descriptors, system
// calls or much time, whose answer is checked. Slices of the loop's tick would give none of that.
#pragma once

#include "base/fd.hpp"
#include "names/registrations.hpp"
#include "reader/child.hpp"

#include <chrono>
#include <optional>

namespace gpusnoop {

class ScanWorker {
public:
    // Without a process, or where that fails, the answer is empty.
    explicit ScanWorker(const Fd& file);

    // True once it has ended; it is ended where it takes too long. Never waits.
    bool ended();

    // The answer, once that is so; nullopt where it is none.
    std::optional<Registrations> answer() const;

private:
    Fd result_;
    std::chrono::steady_clock::time_point begun_;
    Child child_;
};

} // namespace gpusnoop
