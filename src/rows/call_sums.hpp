// SPDX-License-Identifier: Apache-2.0
// Sums of each row since the last report. A report may cover weeks, and a process may make new rows with every call:
// beyond a limit, the rows of the process that has most of them lose detail, but nothing of their sums.
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

// Calls of an interval, grouped the way the user wants to see them: the part that all tools have in common. Group has a
// `WhoSeen who`. Key is a CallKey with what a tool tells apart besides, and says by itself which of that a call has:
// void set(const Settings&, const call_key&).
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
    // The group with this key, which the call is one of. New where there is none yet.
    Group& group_at(const Key& key, const call_key& call)
    {
        Group& group = groups_[key];
        group.who.add(call.image, processes_.owner(call.image, call.cgroups));
        return group;
    }
    Group& group_of(const call_key& call) { return group_at(key_of(call), call); }
    // The same, of a call that has been made: what is held has the form of one, but is by no API.
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
    // To print a row takes some 20 us, and the next report is not to wait for that.
    static constexpr size_t rows_per_second = 8192;
    static size_t
    limit_for(std::optional<std::chrono::nanoseconds> interval); // between reports; nullopt: one, at the end

    // limit: of rows with all detail. As many rows without it are kept beside them.
    explicit CallSums(size_t limit = usual_limit) : limit_(limit) {}

    void add(const CallDelta& delta);
    // Of these processes nothing is told apart any more.
    void merge(const std::set<ImageId>& images);
    std::span<const CallDelta> rows() const { return rows_; }
    // Calls, or copies, that are in rows of less detail than asked for: without subject (kernel, graph, event,
    // command), thread, stream, stack and cgroup. Beyond the limit of those, they are in a row of pid 0.
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
    std::vector<bool> has_detail_;      // of each row: whether it has all of it
    size_t detailed_ = 0;               // how many have
    std::map<ImageId, size_t> rows_of_; // the same, of each process
    std::set<ImageId> coarse_;          // processes that get no more of these
};

} // namespace gpusnoop
