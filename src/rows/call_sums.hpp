// SPDX-License-Identifier: Apache-2.0
// Sums of calls per row since the last report. Memory is bounded, because a report may cover weeks, and a process may
// create a new row with every call. At the limit, the rows of the process with the most rows are merged. This loses
// their detail (thread, stack, ...), but keeps their counts.
#pragma once

#include "rows/call_view.hpp"
#include "rows/calls.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace gpusnoop {

// Calls of an interval, grouped as the user selected (--by). Group must have a member `WhoSeen who`. Key must derive
// from CallKey; its member function `void set(const Settings&, const call_key&)` sets the tool's own dimensions.
template<class Settings, class Key, class Group>
class CallGroups {
public:
    const std::map<Key, Group>& groups() const { return groups_; }

protected:
    // settings must outlive the object.
    CallGroups(const Settings& settings, Processes& processes) : settings_(settings), processes_(processes) {}

    Key key_of(const call_key& call) const
    {
        Key key;
        static_cast<CallKey&>(key) = call_group(settings_.view, processes_, call);
        key.set(settings_, call);
        return key;
    }
    // Returns the group with this key, and creates it if needed. Adds the call's process to it.
    Group& group_at(const Key& key, const call_key& call)
    {
        Group& group = groups_[key];
        group.who.add(call.image, processes_.owner(call.image, call.cgroups));
        return group;
    }
    Group& group_of(const call_key& call) { return group_at(key_of(call), call); }
    // Like group_of(), and records the vendor of the called API. Use group_of() for held memory, whose call_key has no
    // API.
    Group& called(const call_key& call)
    {
        Group& group = group_of(call);
        group.who.vendors |= vendor_bit(call);
        return group;
    }

    const Settings& settings_;
    Processes& processes_;
    std::map<Key, Group> groups_;
};

class CallSums {
public:
    static constexpr size_t usual_limit = 65'536; // rows; about 25 MB
    // Printing a row takes about 20 us, and printing a report must not delay the next one.
    static constexpr size_t rows_per_second = 8192;
    // interval: time between reports; nullopt means a single report at the end.
    static size_t limit_for(std::optional<std::chrono::nanoseconds> interval);

    // limit: maximum number of rows with full detail. The number of coarse rows has the same limit.
    explicit CallSums(size_t limit = usual_limit) : limit_(limit) {}

    void add(const CallDelta& delta);
    // Merges the rows of these processes into rows with pid 0.
    void merge(const std::set<ImageId>& images);
    std::span<const CallDelta> rows() const { return rows_; }
    // Number of calls in coarse rows. A coarse row has no subject (kernel, graph, event, command), thread, stream,
    // stack or cgroup. If there are too many coarse rows, further calls are added to a row with pid 0.
    uint64_t merged() const { return merged_; }
    void clear();

private:
    CallDelta& row(const call_key& key, bool has_detail);
    bool make_room_for(const ImageId& image);
    void add_coarse(const CallDelta& delta);
    template<class F>
    void rebuild(F&& again);

    size_t limit_;
    uint64_t merged_ = 0;
    std::vector<CallDelta> rows_;
    ByCallKey<size_t> places_;
    std::vector<bool> has_detail_;      // for each element of rows_: true if it has full detail
    size_t detailed_ = 0;               // number of rows with full detail
    std::map<ImageId, size_t> rows_of_; // number of rows with full detail, by process
    std::set<ImageId> coarse_;          // processes that may not add rows with full detail
};

} // namespace gpusnoop
