// SPDX-License-Identifier: Apache-2.0
// Who keeps threads that call from launching: gaps of an interval, added up by who was waited for in the end.
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

// For how long files of each folder were waited for.
class WaitedFiles {
public:
    // "folder/file"; empty: not known.
    void add(const std::string& file, uint64_t ns);
    // Those of the folder that was waited for longest: "folder/file and 3 more". Empty where none is known.
    std::string most() const;

private:
    struct OfFolder {
        std::set<std::string> files; // some of them
        uint64_t ns = 0;
    };
    std::map<std::string, OfFolder> folders_;
};

// What ended blocks, by time; the keys are enum woken_by.
using BlockEnds = std::map<uint32_t, uint64_t>;

// What a thread waited for: threads of one name, maybe by way of others, or no thread.
struct GapCause {
    uint32_t by = WOKEN_BY_THREAD; // enum woken_by
    std::string comm;
    std::set<uint32_t> pids;
    uint64_t blocked_ns = 0; // that the thread waited for them
    TimeParts parts{};       // what they did meanwhile; all 0: not known
    bool indirect = false;   // others came between
    BlockEnds ends{};        // of what they waited for themselves
    WaitedFiles files{};     // that they waited for
};

class GapCauses {
public:
    void add(const gap_record& gap, const GapFiles& files);

    // Of a thread: what was waited for longest, and how many threads ran or could run on so many CPUs on average.
    std::optional<GapCause> worst(uint32_t tid) const;
    struct Load {
        double running = 0, cpus = 0;
    };
    std::optional<Load> load(uint32_t tid) const;

    // What the thread itself waited for; empty where that is not known.
    std::string files(uint32_t tid) const;

private:
    struct OfThread {
        std::map<std::pair<uint32_t, std::string>, GapCause> causes; // by enum woken_by and name
        WaitedFiles files;
        uint64_t gaps = 0, running = 0, cpus = 0;
    };
    std::map<uint32_t, OfThread> threads_;
};

// It waits for another thread: what that one does is what holds it up.
bool is_of_others(uint32_t part);

// The one with the most time; WOKEN_BY_UNKNOWN where there is none.
uint32_t largest_end(const BlockEnds& ends);

// "thread", "timeout", "signal", "interrupt"; empty: not known.
std::string_view block_end_name(uint32_t by);
// "until its own timeout", or of several threads "until their own timeouts"; empty: a thread ended it, or not known.
std::string_view block_end_words(uint32_t by, bool several = false);

uint32_t largest_part(const TimeParts& parts);

} // namespace gpusnoop
