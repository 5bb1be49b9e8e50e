// SPDX-License-Identifier: Apache-2.0
// Calls of NCCL by all ranks of this machine, joined: who of them came last to each collective, and by how much.
//
// A communicator's ranks issue the same collectives in the same order, so the n-th call of one is the n-th of all. Each
// rank has a queue of arrivals; where every queue has one, they are one call. A rank that was seen being made begins
// with call 0. One that is older begins anywhere, and is aligned with another one: their calls are of the same
// operations and sizes, and none has waited for a call to be done before the other one came to it. How far they are
// apart in time tells nothing: of a loop that a slow rank holds up, its call is nearer to the next one of the others.
#pragma once

#include "bpf/shared/collective.h"
#include "output/histogram.hpp"
#include "probes/probes.hpp"
#include "proc/image.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusnoop {

// "AllReduce" of "ncclAllReduceConfig".
std::string_view operation_of(std::string_view symbol);
// What one rank's part of a call moves, as nccl-tests counts it; nullopt: unknown type.
std::optional<uint64_t> collective_bytes(std::string_view operation, uint64_t elements, unsigned data_type,
                                         unsigned ranks);

struct CollectiveSums {
    uint64_t calls = 0; // that were enqueued, or captured
    uint64_t captured = 0;
    uint64_t errors = 0; // not among the calls
    uint64_t bytes = 0;
    uint64_t unsized = 0;    // calls whose bytes are not known
    uint64_t enqueue_ns = 0; // in calls, and their part of the ends of groups
    Histogram sizes;
    // Of collectives:
    uint64_t joined = 0;   // with those of the other ranks here
    uint64_t unjoined = 0; // it is not known which of the others' they belong to, or the others have made none
    uint64_t wait_ns = 0;  // from when it arrived to when the last one did
    uint64_t last = 0;     // calls that this rank came to last
    uint64_t late_ns = 0;  // ... by so much after the one before it
    Histogram skews;       // of these: from the first to the last

    void add(const CollectiveSums& other);
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
    explicit Collectives(std::span<const Probe> probes, bool per_thread = false)
        : probes_(probes), per_thread_(per_thread)
    {}

    struct Part {                  // of one rank and one operation, by one thread if asked for, since the last time
        uint64_t communicator = 0; // a number of its own
        std::optional<uint64_t> hash{};
        ImageId image{};
        uint32_t tid = 0;
        unsigned rank = 0, ranks = 0, device = 0; // of those that are known
        unsigned here = 0;                        // ranks on this machine
        Joined joined = Joined::alone;
        std::string_view operation;
        CollectiveSums sums;
    };

    void learn(const comm_record& record);
    void add(const collective_call& call);
    void waited(const waited_record& wait);
    // There are ranks that are to be: waits will tell how.
    bool to_align() const;
    // Its process has ended.
    void forget(const ImageId& image);
    // Puts calls together as far as they have come. last: no more will.
    void join(bool last = false);
    std::vector<Part> drain();

private:
    struct Which { // of a rank's sums
        uint16_t operation = 0;
        uint32_t tid = 0;
        auto operator<=>(const Which&) const = default;
    };
    struct Arrival {
        uint64_t ns;
        uint64_t bytes;
        Which which;
        uint64_t done_ns = UINT64_MAX; // by then all had come to it
    };
    struct Rank {
        uint32_t number = 0;
        ImageId image{};
        comm_identity identity{};
        uint64_t communicator = 0; // 0: not known
        bool made = false;
        bool in_step = false; // `next` counts as the others' does
        bool gone = false;
        uint32_t sequence = 0; // of its last call
        int64_t next = 0;      // which call the front of the queue is
        uint32_t tid = 0;      // that made the last call
        std::deque<Arrival> queue;
        std::map<Which, CollectiveSums> sums;
    };
    struct Communicator {
        uint64_t hash = 0;
        std::vector<Rank*> ranks;
        unsigned rounds = 0; // without a new rank
        size_t here = 0;     // ranks, at the most since the last report
        bool aligned = false;
        Joined joined = Joined::alone;
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
    void count(const collective_call& call, uint64_t more_ns, bool failed);
    void count_arrival(Rank& rank, uint32_t tid, Arrival arrival);
    void limit_memory();
    void lose_step(Communicator& communicator);
    static void leave_unjoined(Rank& rank);
    bool get_in_step(Communicator& communicator, bool last);
    bool not_told(Communicator& communicator);
    void join(Communicator& communicator, bool last);
    static void join_front(const std::vector<Rank*>& ranks);
    void remove_gone(Communicator& communicator);
    uint16_t operation_numbered(uint32_t row);

    std::span<const Probe> probes_;
    bool per_thread_;
    std::vector<std::string_view> operations_;
    std::map<uint32_t, uint16_t> operation_of_row_;
    std::unordered_map<uint32_t, std::unique_ptr<Rank>> ranks_; // by number
    std::map<uint64_t, Communicator> communicators_;
    uint64_t communicators_seen_ = 0;
    std::unordered_map<uint32_t, Group> groups_; // by thread
};

} // namespace gpusnoop
