// SPDX-License-Identifier: Apache-2.0
// Causes of gaps: sums the gaps of each thread in an interval by the thread or event that it ultimately waited for.
#pragma once

#include "bpf/shared/gap.h"
#include "rows/thread_times.hpp"
#include "tools/cudagap/blocks.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace gpusnoop {

// Time that a thread waited for files, by folder.
class WaitedFiles {
public:
    // file: "folder/file"; ignored if empty.
    void add(const std::string& file, uint64_t ns);
    // Describes the folder whose files were waited for longest: "folder/file and 3 more". Empty if no file is known.
    std::string top_folder() const;

private:
    struct OfFolder {
        std::set<std::string> files; // names of files, up to a limit
        uint64_t ns = 0;
    };
    std::map<std::string, OfFolder> folders_;
};

// Blocked time in ns, by the event that ended the blocked period (enum woken_by).
using BlockEnds = std::map<uint32_t, uint64_t>;

// Cause of a thread's waits: either a group of threads with the same name, which it waited for directly or through
// other threads, or an event that no thread caused.
struct GapCause {
    uint32_t by = WOKEN_BY_THREAD; // enum woken_by
    std::string comm;
    std::set<uint32_t> pids;
    uint64_t blocked_ns = 0; // time that the thread waited for these threads, or for the event
    TimeParts parts{};       // how these threads spent their time during the wait; all 0: not known
    bool indirect = false;   // the thread waited for these threads through other threads
    BlockEnds ends{};        // events that ended the waits of these threads
    WaitedFiles files{};     // files that these threads waited for
};

class GapCauses {
public:
    void add(const gap_record& gap, const GapFiles& files);

    // The cause that the thread waited for longest.
    std::optional<GapCause> worst(uint32_t tid) const;
    struct Load {
        double running = 0, cpus = 0; // number of runnable threads, and of CPUs that they share
    };
    // Average load when the thread's gaps ended.
    std::optional<Load> load(uint32_t tid) const;

    // The files that the thread itself waited for; empty if not known.
    std::string files(uint32_t tid) const;

private:
    struct OfThread {
        std::map<std::pair<uint32_t, std::string>, GapCause> causes; // by enum woken_by and name of the waker
        WaitedFiles files;
        uint64_t gaps = 0, running = 0, cpus = 0;
    };
    std::map<uint32_t, OfThread> threads_;
};

// True if waits of this kind are ended by another thread, whose activity explains the wait.
bool is_wait_for_thread(uint32_t part);

// Returns the event (enum woken_by) that ended the most blocked time; WOKEN_BY_UNKNOWN if `ends` is empty.
uint32_t largest_end(const BlockEnds& ends);

// "thread", "timeout", "signal", "interrupt"; empty if not known.
std::string_view block_end_name(uint32_t by);
// "until it times out", or for several threads "until they time out". Empty if a thread ended the wait, or if the event
// is not known.
std::string_view block_end_words(uint32_t by, bool several = false);

uint32_t largest_part(const TimeParts& parts);

} // namespace gpusnoop
