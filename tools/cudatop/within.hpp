// SPDX-License-Identifier: Apache-2.0
// Filter for the list of processes that opens below a row of several processes, such as a pod or a GPU.
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

    // Restores the grouping of the list that contains the row.
    void leave(Settings& settings) const
    {
        settings.rows = rows_;
        settings.by = by_;
    }

    const View& rows() const { return rows_; } // the grouping that leave() restores
    // Adds the processes that are in the row now. Never removes a process: one that makes no calls may leave its row,
    // because its GPU may be known only from its calls. groups: the groups of one interval, grouped by rows().
    void update(const std::map<Key, Group>& groups);
    bool has(const Group& process) const;

private:
    std::string id_;
    View rows_;
    std::optional<std::string> by_;
    std::set<ImageId> images_;
};

} // namespace gpusnoop::cudatop
