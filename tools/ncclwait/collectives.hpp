// SPDX-License-Identifier: Apache-2.0
// Calls of NCCL by all ranks of this machine, joined: who of them came last to each collective, and by how much.
//
// A communicator's ranks issue the same collectives in the same order, so the n-th call of one is the n-th of all. Each
// rank has a queue of arrivals; where every queue has one, they are one call. A rank that was seen being made begins
// with call 0. One that is older begins anywhere, and is aligned with another one: their calls are of the same
// operations and sizes, and none has waited for a call to be done before the other one came to it. How far they are
// apart in time tells nothing: of a loop that a slow rank holds up, its call is nearer to the next one of the others.
#pragma once

#include "attach/probes.hpp"
#include "base/bpf_map.hpp"
#include "bpf/shared/collective.h"
#include "bpf/shared/wait.h"
#include "proc/mapped_file.hpp"
#include "tools/ncclwait/caller_cpu.hpp"
#include "tools/ncclwait/collective_sums.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusnoop {

// Calls that threads are in, as the kernel side keeps them: those whose processes were killed there are taken out.
class FrontCalls {
public:
    explicit FrontCalls(int fd) : calls_(fd, FRONT_CALLS) {}

    void forget(const std::set<ImageId>& gone) const
    {
        for (size_t i = 0; i < FRONT_CALLS; i++) {
            volatile front_call& call = calls_[i];
            if (!load_acquire(call.owner) ||
                !gone.contains(ImageId{.pid = call.image.pid, .serial = call.image.serial}))
                continue;
            call.stack = 0;
            call.image.pid = 0;
            store_release<__u64>(call.owner, 0);
        }
    }

private:
    SharedArray<front_call> calls_;
};

// How the calls of a communicator's ranks are put together.
enum class Joined : uint8_t {
    alone,   // it has one rank here
    not_yet, // too little has been seen of some
    exactly,
    aligned,
};

class Collectives {
public:
    struct Asked {
        bool per_thread = false, per_size = false, per_stream = false;
        bool lines = false;   // of single collectives
        bool failed = false;  // ... or of calls that failed; their sums are told apart by result
        uint64_t unit_ns = 1; // that histograms of times count in
    };
    explicit Collectives(std::span<const Probe> probes, const Asked& asked) : probes_(probes), asked_(asked) {}

    struct Part {                  // of one rank and one operation, by one thread if asked for, since the last time
        uint64_t communicator = 0; // a number of its own
        std::optional<uint64_t> hash{};
        ImageId image{};
        uint32_t tid = 0;
        unsigned rank = 0, ranks = 0, device = 0; // of those that are known
        unsigned here = 0;                        // ranks on this machine
        Joined joined = Joined::alone;
        std::string_view operation;
        std::optional<uint64_t> size;   // a power of two: calls move as much, or up to twice of it; where asked for
        std::optional<uint64_t> stream; // where asked for, of calls that take one
        int result = 0;                 // of those that failed, where asked for
        std::set<uint32_t> callers;     // threads of the rank that have called, whichever operation
        CollectiveSums sums;
    };

    // Which communicator, and how much of it is seen.
    struct Of {
        uint64_t communicator = 0, hash = 0;
        unsigned ranks = 0, here = 0;
        Joined joined = Joined::alone;
        std::optional<uint64_t> number{}; // of the collective, from 1 on; unknown where it is older than the run
    };
    // A rank's part of a collective.
    struct Came {
        unsigned rank = 0, device = 0;
        ImageId image{};
        uint32_t tid = 0;
        uint64_t ns = 0;
        std::string_view operation;
        std::optional<uint64_t> bytes{};
        uint64_t elements = 0;
        uint32_t root = 0;
        uint8_t type = 0, reduction = 0;
        uint64_t wait_ns = 0; // its process' longest wait for the device before its next collective; 0: none
        int32_t stack = -1;   // of its caller; negative: none
    };
    // The ranks' parts that belong together, in the order of ranks; one alone where it is not known to what it does.
    struct Line {
        Of of;
        bool joined = false;
        std::vector<Came> ranks;
        int result = 0; // of a call that failed, whether it is a collective or not
    };
    // Of those ranks that have come to a collective as far as the others: when they did. Of the others: their last one.
    struct Member : Came {
        bool has_come = false;
        bool called = false;                 // at all, as far as was seen
        bool ended = false;                  // its process has
        bool destroyed = false;              // ... or it has destroyed the communicator
        std::optional<uint64_t> elsewhere{}; // hash of the communicator that its process has called for since
        std::string_view operation_elsewhere{};
    };
    // A communicator that does not go on, or whose ranks do not do the same.
    struct Stall {
        enum class Kind : uint8_t {
            missing,  // some ranks have not come to a collective that others have come to
            mismatch, // all have, but not to the same one
            silent,   // all have, and none has made another one since
        };
        Kind kind = Kind::silent;
        Of of;
        uint64_t since_ns = 0; // when the first one came to it; of silent ones, the last
        std::vector<Member> members;
    };

    void learn(const comm_record& record);
    void add(const collective_call& call);
    void waited(const waited_record& wait);
    // Whose the kernel side's communicator of this number is.
    std::optional<ImageId> image_of(uint32_t comm) const;
    // There are ranks that are to be: waits will tell how.
    bool to_align() const;
    // Of all ranks, those that have called since the last drain().
    std::vector<Caller> callers() const;
    // Its process has ended.
    void forget(const ImageId& image);
    // Puts calls together as far as they have come. last: no more will.
    void join(bool last = false);
    std::vector<Part> drain();
    // As of the last join(): those that have not gone on since `before_ns`, and mismatches that were found meanwhile.
    std::vector<Stall> stalls(uint64_t before_ns);
    // Those of which it is known by now what came behind them; last: all.
    std::vector<Line> drain_lines(uint64_t now_ns, bool last = false);

private:
    struct Which { // of a rank's sums
        uint16_t operation = 0;
        uint8_t octave = 0; // of the size, from 1 on
        uint32_t tid = 0;
        std::optional<uint64_t> stream{};
        int result = 0;
        auto operator<=>(const Which&) const = default;
    };
    struct Arrival {
        uint64_t ns;
        uint64_t bytes;
        Which which;
        uint64_t elements = 0;
        uint32_t tid = 0;
        uint32_t root = 0;
        uint8_t type = 0, reduction = 0;
        bool sized = true;
        uint64_t done_ns = UINT64_MAX; // by then all had come to it
        uint64_t wait_ns = 0;          // as in Came
        int32_t stack = -1;            // as in Came

        bool is_like(const Arrival& other) const
        {
            return which.operation == other.which.operation && elements == other.elements && type == other.type &&
                   root == other.root && reduction == other.reduction;
        }
    };
    struct Rank {
        uint32_t number = 0;
        ImageId image{};
        comm_identity identity{};
        uint64_t communicator = 0; // 0: not known
        bool made = false;
        bool in_step = false; // `next` counts as the others' does
        bool gone = false;
        bool destroyed = false;        // ... by its process
        uint32_t sequence = 0;         // of its last call
        int64_t next = 0;              // which call the front of the queue is
        std::optional<Arrival> latest; // that was counted
        std::deque<Arrival> queue;
        std::map<Which, CollectiveSums> sums;
        std::set<uint32_t> callers; // threads, since the last time
    };
    struct Communicator {
        uint64_t hash = 0;
        std::vector<Rank*> ranks;
        unsigned rounds = 0; // without a new rank
        size_t here = 0;     // ranks, at the most since the last report
        bool aligned = false;
        Joined joined = Joined::alone;
        uint64_t alike = 0;     // collectives in a row that were the same one to all ranks
        bool differs = false;   // the last one was not
        std::deque<Line> lines; // not told yet
    };
    struct Group { // of a thread
        uint32_t pid = 0;
        unsigned depth = 0;
        std::vector<collective_call> calls;
    };

    Rank* rank_numbered(uint32_t number);
    Communicator& communicator_of(Rank& rank);
    void check_sequence(const collective_call& call);
    void group_ends(const collective_call& end, bool dropped);
    void count(const collective_call& call, uint64_t more_ns, int result);
    void count_arrival(Rank& rank, const Arrival& arrival);
    void limit_memory();
    void lose_step(Communicator& communicator);
    void leave_unjoined(Rank& rank, bool alone = false);
    bool get_in_step(Communicator& communicator, bool last);
    bool not_told(Communicator& communicator);
    void join(Communicator& communicator, bool last);
    void join_front(Communicator& communicator);
    void compare_front(Communicator& communicator);
    static void remove_gone(Communicator& communicator);
    Of of(const Rank& rank, int64_t number) const;
    Came came(const Rank& rank, const Arrival& arrival) const;
    Member member(const Rank& rank, const Arrival* arrival) const;
    std::optional<Stall> stall_of(const Communicator& communicator, uint64_t before_ns) const;
    void add_line(const std::vector<Rank*>& ranks, bool joined);
    void add_failure(const Rank& rank, const Arrival& arrival, int result);
    static void add_wait(Communicator& communicator, Rank& rank, const waited_record& wait);
    static bool is_followed(const Communicator& communicator, const Line& line, uint64_t now_ns);
    uint16_t operation_numbered(const collective_call& call);
    uint16_t operation_called(std::string_view name);
    Arrival arrival_of(const Rank& rank, const collective_call& call);

    std::span<const Probe> probes_;
    Asked asked_;
    std::vector<std::string_view> operations_;
    std::map<uint32_t, uint16_t> operation_of_row_;
    std::unordered_map<uint32_t, std::unique_ptr<Rank>> ranks_; // by number
    std::map<uint64_t, Communicator> communicators_;
    uint64_t communicators_seen_ = 0;
    std::unordered_map<uint32_t, Group> groups_; // by thread
    std::vector<Stall> mismatches_;              // not told yet
    std::vector<Line> loose_lines_;              // of communicators that are no more, and of failures
};

} // namespace gpusnoop
