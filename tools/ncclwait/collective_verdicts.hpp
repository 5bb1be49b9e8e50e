// SPDX-License-Identifier: Apache-2.0
// Why a communicator does not go on, in words: who has not come, who came to something else, or that all have come and
// wait all the same.
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

// Collectives and ranks as sentences have them.

// "rank 5", "ranks 0-3,7"
std::string ranks_in_words(std::span<const unsigned> ranks);

// "AllReduce of 4.0M (collective 61)", as far as that is known.
std::string collective_in_words(const Collectives::Of& of, const Collectives::Came& came);

// "AllReduce of 1000 float32, sum": all that has to be the same in all ranks.
std::string meaning_in_words(const Collectives::Came& came);

// "12.3 s"
std::string seconds_in_words(uint64_t ns);

struct CollectiveVerdict {
    struct Doing { // of one rank
        std::string text{};
        ImageId image{};
        std::vector<uint64_t> callers{}; // of the call that it is in, the innermost first
    };
    std::string_view kind; // "missing", "mismatch", "stuck", or "ras"
    Collectives::Stall stall;
    uint64_t time_ns = 0;        // CLOCK_MONOTONIC
    std::vector<unsigned> ranks; // that have not come, or differ from most
    std::string text;
    std::vector<Doing> doing{};
};

class CollectiveVerdicts {
public:
    // limit_ns: nobody is said to be missing before.
    CollectiveVerdicts(std::span<const Probe> probes, uint64_t limit_ns, const std::string& host_root)
        : limit_ns_(limit_ns), places_(probes), suspensions_(host_root)
    {}

    // To be called once a second, after Collectives::join(). What was said is not said again.
    std::vector<CollectiveVerdict> look(Collectives& collectives, uint64_t now_ns);
    // A process has waited for the device until now: that went on.
    void waited(const waited_record& wait);
    // Somebody is silent and looked at, and is not stuck where its waits return.
    bool asks_for_waits() const { return !silent_.empty(); }

private:
    struct Said {
        std::string_view kind;
        uint64_t since_ns = 0;
        std::vector<unsigned> ranks;
        bool operator==(const Said&) const = default;
    };

    void look_at_silent(const Collectives::Stall& stall, uint64_t now_ns, std::map<uint32_t, uint64_t>& before);
    bool is_stuck(const Collectives::Stall& stall, uint64_t now_ns) const;
    bool is_known_of(const Collectives::Stall& stall) const;
    CollectiveVerdict missing(Collectives::Stall stall, uint64_t now_ns) const;
    CollectiveVerdict stuck(Collectives::Stall stall, uint64_t now_ns) const;
    std::string suspension_of(const Collectives::Member& member) const;
    const ThreadPlaces::Place* place_of(const Collectives::Member& member) const;
    CollectiveVerdict::Doing doing(const Collectives::Member& member, uint64_t now_ns) const;

    uint64_t limit_ns_;
    ThreadPlaces places_;
    Suspensions suspensions_;
    IdleLooks idle_looks_;
    std::map<uint64_t, Said> said_;          // by communicator
    std::map<uint32_t, uint64_t> silent_;    // processes, and since when their waits have been watched
    std::map<uint32_t, uint64_t> waited_ns_; // of these, when a wait has returned last
};

// Which call of one rank is which of another one's, where nobody has counted them from the start.

// Which call of `other` the first one of `one` is, counted from its first; nullopt where they do not tell. A call has
// been waited for by `done_ns`, or nobody has: never.
struct Pattern {
    uint64_t ns, done_ns, signature;
    static constexpr uint64_t never = UINT64_MAX;
};
std::optional<int64_t> shift_between(std::span<const Pattern> one, std::span<const Pattern> other);

} // namespace gpusnoop
