// SPDX-License-Identifier: Apache-2.0
// Guard over the bytes of a probed file.
//
// The kernel copies the instruction under a probe once, and executes that copy until the probe is gone
// (prepare_uprobe() in kernel/events/uprobes.c, since Linux 3.5). If the file is overwritten in place, the kernel puts
// breakpoints at the old places into the new code, and each process that maps the file crashes. A read lease makes
// writers wait in open() or truncate() until release(). Without a lease, a write is noticed only after it has happened.
#pragma once

#include "base/fd.hpp"
#include "proc/mapped_file.hpp"

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace gpusnoop {

class FileGuard {
public:
    using Clock = std::chrono::steady_clock;

    FileGuard() = default; // of nothing
    // file: O_PATH; replaced by a descriptor open for reading where a lease is possible.
    FileGuard(Fd& file, const FileId& id);

    // A writer has the file open, or release() was called: the bytes may change at any time.
    bool is_open() const { return open_; }
    // A writer waits or has written. thorough: also compares times and size, for writes that neither a lease nor
    // inotify reports (a shared mapping, another host).
    bool is_broken(const Fd& file, bool thorough) const;
    // Lets writers continue. To be called after the probes were detached.
    void release(const Fd& file);
    // True once no writer has the file open (with a lease) or none has written for a while (without). The guard is in
    // place again then.
    bool retake(const Fd& file);

    // There is no lease: the file should be added to an inotify instance.
    bool needs_watch() const { return !lease_; }
    int watch() const { return watch_; } // descriptor of that instance's watch; -1: none
    void set_watch(int watch) { watch_ = watch; }
    void on_watch_event(uint32_t mask); // IN_*

private:
    struct Stamp {
        int64_t modified_ns = 0;
        uint64_t size = 0;
        auto operator<=>(const Stamp&) const = default;
    };
    static Stamp stamp_of(const Fd& file);

    bool lease_ = false;
    bool open_ = false;
    bool written_ = false; // inotify has reported a write
    bool closed_ = false;  // ... and that the writer has closed the file
    int watch_ = -1;
    Stamp stamp_;
    Clock::time_point changed_; // last time that a write was noticed
};

// SIGIO, which reports that a writer waits for a lease, and the inotify instance for files without one.
class WriteSignals {
public:
    WriteSignals(); // blocks SIGIO for good: it would end the process. Throws Error.

    int lease_descriptor() const { return leases_.get(); }  // readable after SIGIO
    int watch_descriptor() const { return watches_.get(); } // inotify
    bool drain_leases();                                    // true: some lease may be broken
    // The next inotify event: its watch, or -1 where events were lost, and its mask.
    std::optional<std::pair<int, uint32_t>> next_event();
    void remove(int watch);

private:
    Fd leases_, watches_;
    std::string buffer_; // of events
};

} // namespace gpusnoop
