// SPDX-License-Identifier: Apache-2.0
// List of the processes in one row of another list. Such a row is, for example, a pod or a GPU.
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

    const View& rows() const { return rows_; } // grouping of the list that contains the row
    // Adds the processes that are in the row now. A process stays in this list even if it is no longer in the row,
    // because its GPU may be known only while the process makes calls. groups: one interval's groups, one per row of
    // the other list.
    void update(const std::map<Key, Group>& groups);
    bool has(const Group& process) const;

private:
    std::string id_;
    View rows_;
    std::optional<std::string> by_;
    std::set<ImageId> images_;
};

} // namespace gpusnoop::cudatop
