// SPDX-License-Identifier: Apache-2.0
// Calls of an interval, grouped the way the user wants to see them: the part that all tools have in common. Group has a
// `WhoSeen who`. Key is a CallKey with what a tool tells apart besides, and says by itself which of that a call has:
// void set(const Settings&, const call_key&).
#pragma once

#include "rows/call_view.hpp"

#include <map>

namespace gpusnoop {

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

} // namespace gpusnoop
