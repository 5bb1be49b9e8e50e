// SPDX-License-Identifier: Apache-2.0
// Rows are the processes of one row of another list: of a pod, of a GPU, ...
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

    void leave(Settings& settings) const // as they were
    {
        settings.rows = rows_;
        settings.by = by_;
    }

    const View& rows() const { return rows_; } // of the other list
    // What that list is in an interval. Who has been in the row is in it: a GPU is known only by what is done on it.
    void update(const std::map<Key, Group>& groups);
    bool has(const Group& process) const;

private:
    std::string id_;
    View rows_;
    std::optional<std::string> by_;
    std::set<ImageId> images_;
};

} // namespace gpusnoop::cudatop
