// SPDX-License-Identifier: Apache-2.0
// Sums of calls per row since the last report. A report may cover weeks, and a process may create a new row with every
// call. Beyond a limit, the process with the most rows loses detail (thread, stack, ...) but keeps its sums.
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

// Calls of an interval, grouped as the user selected (--by). Group has a member `WhoSeen who`. Key is a CallKey with
// the tool's own dimensions, and has a member function that sets them: void set(const Settings&, const call_key&).
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
    // The group with this key; creates it if needed. Adds the call's process to the group.
    Group& group_at(const Key& key, const call_key& call)
    {
        Group& group = groups_[key];
        group.who.add(call.image, processes_.owner(call.image, call.cgroups));
        return group;
    }
    Group& group_of(const call_key& call) { return group_at(key_of(call), call); }
    // group_of() for a call that was made, which has an API. Held memory also comes as a call_key, but has none.
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
    static constexpr size_t usual_limit = 65'536; // some 25 MB
    // Printing a row takes about 20 us, and must not delay the next report.
    static constexpr size_t rows_per_second = 8192;
    static size_t
    limit_for(std::optional<std::chrono::nanoseconds> interval); // between reports; nullopt: one report, at the end

    // limit: of rows with full detail. The same number of coarse rows may be added to them.
    explicit CallSums(size_t limit = usual_limit) : limit_(limit) {}

    void add(const CallDelta& delta);
    // Merges the rows of these processes into rows of pid 0.
    void merge(const std::set<ImageId>& images);
    std::span<const CallDelta> rows() const { return rows_; }
    // Number of calls (or copies) in coarse rows: without subject (kernel, graph, event, command), thread, stream,
    // stack and cgroup. Beyond the limit of coarse rows, calls are in a row of pid 0.
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
    std::vector<bool> has_detail_;      // per row
    size_t detailed_ = 0;               // number of rows with full detail
    std::map<ImageId, size_t> rows_of_; // number of rows with full detail, per process
    std::set<ImageId> coarse_;          // processes that get no more rows with full detail
};

} // namespace gpusnoop
