// SPDX-License-Identifier: Apache-2.0
// Verdicts on communicators that make no progress: their ranks are missing, make different calls, or are all stuck.
#pragma once

#include "tools/ncclwait/caller_cpu.hpp"
#include "tools/ncclwait/collectives.hpp"
#include "tools/ncclwait/thread_places.hpp"
#include "who/cgroup_facts.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// Phrases for messages.

// "rank 5", "ranks 0-3,7"
std::string ranks_in_words(std::span<const unsigned> ranks);

// "AllReduce of 4 MiB (collective 61)". Leaves out the size or the number if it is not known.
std::string collective_in_words(const Collectives::Ref& ref, const Collectives::RankArrival& arrival);

// "AllReduce of 1000 float32, sum". Contains all arguments that must be the same in all ranks.
std::string arguments_in_words(const Collectives::RankArrival& arrival);

// "12.3 s"
std::string seconds_in_words(uint64_t ns);

struct CollectiveVerdict {
    struct Activity { // what one rank was doing when the verdict was made
        std::string text{};
        ImageId image{};
        std::vector<uint64_t> callers{}; // return addresses of the rank's current call, innermost first
    };
    std::string_view kind; // "missing", "mismatch", "stuck", or "ras"
    Collectives::Stall stall;
    uint64_t time_ns = 0;        // time of the verdict, CLOCK_MONOTONIC
    std::vector<unsigned> ranks; // ranks that are missing, differ from most ranks, or are behind (RAS)
    std::string text;
    std::vector<Activity> activities{};
};

class CollectiveVerdicts {
public:
    // limit_ns: shorter stalls are not reported.
    CollectiveVerdicts(std::span<const Probe> probes, uint64_t limit_ns, const std::string& host_root)
        : limit_ns_(limit_ns), places_(probes), suspensions_(host_root)
    {}

    // Call this once a second, after Collectives::join(). Returns verdicts that are new or have changed.
    std::vector<CollectiveVerdict> check(Collectives& collectives, uint64_t now_ns);
    // Call this when a wait for the GPU has returned, which means that the process makes progress.
    void waited(const waited_record& wait);
    // True while a silent communicator is watched. Waits for the GPU must then be traced, because a communicator is
    // stuck only if none of its waits returns.
    bool needs_waits() const { return !silent_.empty(); }

private:
    struct Reported {
        std::string_view kind;
        uint64_t since_ns = 0;
        std::vector<unsigned> ranks;
        bool operator==(const Reported&) const = default;
    };

    void watch_silent(const Collectives::Stall& stall, uint64_t now_ns, std::map<uint32_t, uint64_t>& before);
    bool is_stuck(const Collectives::Stall& stall, uint64_t now_ns) const;
    bool is_activity_known(const Collectives::Stall& stall) const;
    CollectiveVerdict missing(Collectives::Stall stall, uint64_t now_ns) const;
    CollectiveVerdict stuck(Collectives::Stall stall, uint64_t now_ns) const;
    std::string suspension_of(const Collectives::Member& member) const;
    const ThreadPlaces::Place* place_of(const Collectives::Member& member) const;
    CollectiveVerdict::Activity activity_of(const Collectives::Member& member, uint64_t now_ns) const;

    uint64_t limit_ns_;
    ThreadPlaces places_;
    Suspensions suspensions_;
    IdleScans idle_scans_;
    std::map<uint64_t, Reported> reported_;  // last verdict, by communicator
    std::map<uint32_t, uint64_t> silent_;    // watched processes, by id: time when watching began, CLOCK_MONOTONIC
    std::map<uint32_t, uint64_t> waited_ns_; // by process id, for processes in silent_: time when a wait last returned
};

// Alignment of ranks that made calls before tracing began.

// One rank's call of a collective. done_ns: time when a wait for the call returned, or `never` if no such wait is
// known. signature: combines size and operation.
struct Pattern {
    uint64_t ns, done_ns, signature;
    static constexpr uint64_t never = UINT64_MAX;
};
// Returns the shift, possibly negative, such that call i in `one` matches call i + shift in `other`. nullopt if no
// shift is clearly best.
std::optional<int64_t> shift_between(std::span<const Pattern> one, std::span<const Pattern> other);

} // namespace gpusnoop
