// SPDX-License-Identifier: Apache-2.0
// Joins the NCCL calls of all ranks on this machine, to find which rank entered each collective last, and how late.
//
// All ranks of a communicator issue the same collectives in the same order, so the n-th calls of all ranks form one
// collective. Each rank has a queue of arrivals. When no queue is empty, the fronts of all queues form one collective.
// A rank whose creation was traced starts with call 0. An older rank starts at an unknown position. Such a rank is
// aligned with another one: their calls are matched so that operations and sizes agree. A wait for a collective cannot
// return before all ranks have entered it, so matches that contradict this are avoided. Timestamps cannot align ranks:
// a slow rank's call n may be closer in time to the others' call n+1.
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

// The kernel side's table of calls in flight. The kernel side removes an entry when the call returns. If the process
// was killed during the call, forget() removes the entry.
class FrontCalls {
public:
    explicit FrontCalls(int fd) : calls_(fd, FRONT_CALLS) {}

    void forget(const std::set<ImageId>& exited) const
    {
        for (size_t i = 0; i < FRONT_CALLS; i++) {
            volatile front_call& call = calls_[i];
            if (!load_acquire(call.owner) ||
                !exited.contains(ImageId{.pid = call.image.pid, .serial = call.image.serial}))
                continue;
            call.stack = 0;
            call.image.pid = 0;
            store_release<__u64>(call.owner, 0);
        }
    }

private:
    SharedArray<front_call> calls_;
};

// How the calls of a communicator's ranks are joined into collectives.
enum class Joined : uint8_t {
    alone,   // there is only one rank on this machine
    not_yet, // too few calls have been seen
    exactly, // by sequence number
    aligned, // by matching operations, sizes and waits
};

class Collectives {
public:
    struct Detail {
        bool per_thread = false, per_size = false, per_stream = false;
        bool lines = false;   // collect lines (-e)
        bool failed = false;  // collect lines only for failed calls, and group sums by result
        uint64_t unit_ns = 1; // unit of duration histograms, in ns
    };
    explicit Collectives(std::span<const Probe> probes, const Detail& detail) : probes_(probes), detail_(detail) {}

    struct Part {                  // sums since the last drain() by rank, operation, and the dimensions in Detail
        uint64_t communicator = 0; // id that we assign, because two jobs may have the same hash
        std::optional<uint64_t> hash{};
        ImageId image{};
        uint32_t tid = 0;
        unsigned rank = 0, ranks = 0, device = 0; // valid only if `hash` is set
        unsigned here = 0;                        // number of the communicator's ranks on this machine
        Joined joined = Joined::alone;
        std::string_view operation;
        std::optional<uint64_t> size;   // with per_size: bytes per call, rounded down to a power of two
        std::optional<uint64_t> stream; // with per_stream: stream of the calls, if they take one
        int result = 0;                 // with Detail::failed: result of the failed calls
        std::set<uint32_t> callers;     // threads that made calls of any operation for this rank
        CollectiveSums sums;
    };

    // Identifies a collective. ranks: number of ranks in its communicator. here: number of these ranks on this machine.
    struct Ref {
        uint64_t communicator = 0, hash = 0;
        unsigned ranks = 0, here = 0;
        Joined joined = Joined::alone;
        std::optional<uint64_t> number{}; // sequence number in the communicator, starting at 1; nullopt if unknown
    };
    // The arrival of a rank at a collective.
    struct RankArrival {
        unsigned rank = 0, device = 0;
        ImageId image{};
        uint32_t tid = 0;
        uint64_t ns = 0;
        std::string_view operation;
        std::optional<uint64_t> bytes{};
        uint64_t elements = 0;
        uint32_t root = 0;
        uint8_t type = 0, reduction = 0;
        uint64_t wait_ns = 0; // longest wait for the GPU that began between this collective and the rank's next; 0:
                              // none
        int32_t stack = -1;   // id of the call stack; negative: none
    };
    // The arrivals of all ranks at one collective, by ascending rank. An arrival that cannot be joined has its own
    // line.
    struct Line {
        Ref ref;
        bool joined = false;
        std::vector<RankArrival> ranks;
        int result = 0; // result of a failed call, which may be any NCCL call; 0 in other lines
    };
    // A rank of a stalled communicator, with its arrival at the stalled collective. If the rank has not entered that
    // collective, this is its arrival at the last collective that it entered.
    struct Member : RankArrival {
        bool has_entered = false; // the rank has entered the stalled collective
        bool called = false;      // the rank has entered a collective since tracing began
        bool exited = false;      // the process has exited
        bool destroyed = false;   // the rank has destroyed the communicator
        // Hash of another communicator that the process has used since this arrival, if any, and the operation that it
        // called there. If there are several, the most recently used one.
        std::optional<uint64_t> elsewhere{};
        std::string_view operation_elsewhere{};
    };
    // A communicator that makes no progress, or whose ranks make different calls.
    struct Stall {
        enum class Kind : uint8_t {
            missing,  // some ranks have not entered a collective that others have entered
            mismatch, // all ranks have entered the collective, but their calls differ
            silent,   // all ranks have entered the collective, and none has entered the next one
        };
        Kind kind = Kind::silent;
        Ref ref;
        uint64_t since_ns = 0; // time of the first arrival; for silent communicators, of the last arrival
        std::vector<Member> members;
    };

    void learn(const comm_record& record);
    void add(const collective_call& call);
    void waited(const waited_record& wait);
    // Returns the process of a rank. comm: the rank's number in the kernel side's records (collective_call::comm).
    std::optional<ImageId> image_of(uint32_t comm) const;
    // True if some ranks must be aligned, which requires tracing waits.
    bool needs_alignment() const;
    // Threads of all ranks that have made calls since the last drain().
    std::vector<Caller> callers() const;
    // Call this when a process has exited.
    void forget(const ImageId& image);
    // Joins the calls received so far. last: no more calls will follow.
    void join(bool last = false);
    std::vector<Part> drain();
    // Returns the mismatches found since the last call of stalls(), and the communicators that had made no progress
    // since `before_ns` when join() was last called.
    std::vector<Stall> stalls(uint64_t before_ns);
    // Removes and returns complete lines. last: also incomplete lines.
    std::vector<Line> drain_lines(uint64_t now_ns, bool last = false);

private:
    struct SumKey { // key by which a rank's sums are grouped
        uint16_t operation = 0;
        uint8_t octave = 0; // bit width of the size, plus 1; 0 if unknown, or if not grouped by size
        uint32_t tid = 0;
        std::optional<uint64_t> stream{};
        int result = 0;
        auto operator<=>(const SumKey&) const = default;
    };
    struct Arrival {
        uint64_t ns;
        uint64_t bytes;
        SumKey key;
        uint64_t elements = 0;
        uint32_t tid = 0;
        uint32_t root = 0;
        uint8_t type = 0, reduction = 0;
        bool sized = true;
        uint64_t done_ns = UINT64_MAX; // when a wait for this collective returned; all ranks had entered it by then
        uint64_t wait_ns = 0;          // as in RankArrival
        int32_t stack = -1;            // as in RankArrival

        bool is_like(const Arrival& other) const
        {
            return key.operation == other.key.operation && elements == other.elements && type == other.type &&
                   root == other.root && reduction == other.reduction;
        }
    };
    struct Rank {
        uint32_t number = 0;
        ImageId image{};
        comm_identity identity{};
        uint64_t communicator = 0;     // id of the communicator; 0: not known
        bool made = false;             // the creation of the rank was traced
        bool in_step = false;          // `next` counts from the same collective as in other ranks
        bool left = false;             // the rank has been destroyed, or its process has exited
        bool destroyed = false;        // the process has destroyed the rank
        uint32_t sequence = 0;         // sequence number of the last call
        int64_t next = 0;              // number of the call at the front of the queue
        std::optional<Arrival> latest; // last counted arrival, which may have left the queue
        std::deque<Arrival> queue;
        std::map<SumKey, CollectiveSums> sums;
        std::set<uint32_t> callers; // threads that have made calls since the last drain()
    };
    struct Communicator {
        uint64_t hash = 0;
        std::vector<Rank*> ranks;
        unsigned rounds = 0; // calls of join() since the last new rank
        size_t here = 0;     // maximum number of ranks on this machine since the last report
        bool aligned = false;
        Joined joined = Joined::alone;
        uint64_t matches_in_a_row = 0; // number of consecutive collectives in which the calls of all ranks matched
        bool differs = false;          // the last collective did not match
        std::deque<Line> lines;        // lines that later events may still change
    };
    struct Group { // a thread's NCCL group (ncclGroupStart) that has not ended
        uint32_t pid = 0;
        unsigned depth = 0;
        std::vector<collective_call> calls;
    };

    Rank* find_rank(uint32_t number);
    Communicator& communicator_of(Rank& rank);
    void check_sequence(const collective_call& call);
    void group_ends(const collective_call& end, bool dropped);
    void count(const collective_call& call, uint64_t more_ns, int result);
    void count_arrival(Rank& rank, const Arrival& arrival);
    void limit_memory();
    void lose_step(Communicator& communicator);
    void leave_unjoined(Rank& rank, bool alone = false);
    bool align(Communicator& communicator, bool last);
    bool retry_later(Communicator& communicator);
    void join(Communicator& communicator, bool last);
    void join_front(Communicator& communicator);
    void compare_front(Communicator& communicator);
    static void remove_left(Communicator& communicator);
    Ref ref_of(const Rank& rank, int64_t number) const;
    RankArrival arrival_at(const Rank& rank, const Arrival& arrival) const;
    Member member(const Rank& rank, const Arrival* arrival) const;
    std::optional<Stall> stall_of(const Communicator& communicator, uint64_t before_ns) const;
    void add_line(const std::vector<Rank*>& ranks, bool joined);
    void add_failure(const Rank& rank, const Arrival& arrival, int result);
    static void add_wait(Communicator& communicator, Rank& rank, const waited_record& wait);
    static bool is_followed(const Communicator& communicator, const Line& line, uint64_t now_ns);
    uint16_t operation_of_call(const collective_call& call);
    uint16_t number_of_operation(std::string_view name);
    Arrival arrival_of(const Rank& rank, const collective_call& call);

    std::span<const Probe> probes_;
    Detail detail_;
    std::vector<std::string_view> operations_;
    std::map<uint32_t, uint16_t> operation_of_row_;
    std::unordered_map<uint32_t, std::unique_ptr<Rank>> ranks_; // by Rank::number
    std::map<uint64_t, Communicator> communicators_;
    uint64_t communicators_seen_ = 0;
    std::unordered_map<uint32_t, Group> groups_; // unfinished groups, by thread id
    std::vector<Stall> mismatches_;              // mismatches found since the last call of stalls()
    std::vector<Line> loose_lines_;              // lines of removed communicators, and of failed calls
};

} // namespace gpusnoop
