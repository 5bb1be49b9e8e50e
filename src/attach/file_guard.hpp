// SPDX-License-Identifier: Apache-2.0
// Guard that detects writes to a probed file, before they happen if possible.
//
// The kernel copies the instruction under a probe once, and executes that copy until the probe is removed
// (prepare_uprobe() in kernel/events/uprobes.c, since Linux 3.5). If the file is overwritten in place, the kernel sets
// breakpoints at the old offsets in the new code, and every process that maps the file crashes. A read lease makes
// writers wait in open() or truncate() until release(). Without a lease, a write is detected only afterwards.
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

    FileGuard() = default; // guards no file
    // file: descriptor opened with O_PATH. If a lease is possible, the constructor replaces this descriptor by one that
    // is open for reading.
    FileGuard(Fd& file, const FileId& id);

    // True from release() to a successful retake(), or if a writer had the file open when the guard was made. The
    // contents may then change at any time.
    bool is_open() const { return open_; }
    // True if a writer waits to open the file or has written to it. If thorough is set, also compares the modification
    // time and the size, which detects writes through a shared mapping or by another host. Neither a lease nor inotify
    // reports those.
    bool is_broken(const Fd& file, bool thorough) const;
    // Lets writers continue. Call it after the probes are detached.
    void release(const Fd& file);
    // Tries to guard the file again, and returns true on success. With a lease, fails while a writer has the file open.
    // Without a lease, fails until some time has passed since the last detected write.
    bool retake(const Fd& file);

    // True if the file has no lease. The caller should then add the file to an inotify instance.
    bool needs_watch() const { return !lease_; }
    int watch() const { return watch_; } // inotify watch descriptor; -1: none
    void set_watch(int watch) { watch_ = watch; }
    void on_watch_event(uint32_t mask); // mask: IN_* flags of the inotify event

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
    bool closed_ = false;  // inotify has reported that the writer closed the file
    int watch_ = -1;
    Stamp stamp_;
    Clock::time_point changed_; // time of the last detected write
};

// Sources of write notifications: SIGIO for files with a lease, inotify for files without one.
class WriteSignals {
public:
    WriteSignals(); // blocks SIGIO, whose default action ends the process. Throws Error.

    int lease_descriptor() const { return leases_.get(); }  // readable after SIGIO
    int watch_descriptor() const { return watches_.get(); } // inotify instance; -1 if it could not be created
    bool drain_leases();                                    // returns true if a writer may be waiting to open a file
    // Returns the watch descriptor and the mask of the next inotify event. The descriptor is -1 if events were lost.
    std::optional<std::pair<int, uint32_t>> next_event();
    void remove(int watch);

private:
    Fd leases_, watches_;
    std::string buffer_; // inotify events that next_event() has yet to return
};

} // namespace gpusnoop
