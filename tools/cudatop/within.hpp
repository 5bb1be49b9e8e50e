// SPDX-License-Identifier: Apache-2.0
// The list of processes within one row of another list, such as a pod or a GPU.
#pragma once

#include "tools/cudatop/columns.hpp"
#include "tools/cudatop/groups.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace gpusnoop::cudatop {

class Within {
public:
    Within(std::string id, const Settings& settings) : id_(std::move(id)), rows_(settings.rows), by_(settings.by) {}

    // Restores the settings of the other list.
    void leave(Settings& settings) const
    {
        settings.rows = rows_;
        settings.by = by_;
    }

    const View& rows() const { return rows_; } // of the other list
    // groups: the rows of the other list in an interval. A process that was once in the row stays in this list, because
    // its GPU may be known only while it makes calls.
    void update(const std::map<Key, Group>& groups);
    bool has(const Group& process) const;

private:
    std::string id_;
    View rows_;
    std::optional<std::string> by_;
    std::set<ImageId> images_;
};

} // namespace gpusnoop::cudatop
