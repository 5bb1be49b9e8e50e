// SPDX-License-Identifier: Apache-2.0
// Assignment of owners to teams, from the user's file (--teams).
#pragma once

#include "who/attribution.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

class Teams {
public:
    Teams() = default; // no teams
    // text: lines of TEAM,KIND,GLOB. The first line that matches applies. # begins a comment. KIND is namespace, pod
    // (NAMESPACE/NAME), container, label (KEY=VALUE), cgroup, user, unit or job (Slurm). Throws Error, which names the
    // file and the line.
    Teams(std::string_view text, const std::string& file);
    static Teams of_file(const std::string& path);

    // Returns the team of the owner's processes; empty if no line matches.
    const std::string& of(const Owner& owner, const std::string& user) const;
    bool any() const { return !rows_.empty(); }

private:
    struct Row {
        std::string team, glob;
        size_t kind;
    };
    std::vector<Row> rows_;
};

} // namespace gpusnoop
