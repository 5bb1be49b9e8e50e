// SPDX-License-Identifier: Apache-2.0
// What --help says: the examples first, then the options in the groups and the order of the man pages.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpusnoop {

struct ListedOption {
    std::string names; // "-p,--pid"
    std::string type;  // what stands in the place of its value; empty for a flag
    std::string text;
};

struct ListedArgument {
    std::string name; // "INTERVAL"
    std::string text;
};

// No line has more than 100 columns. An option that help.cpp has no place for stands under "Other".
std::string help_text(std::string_view tool, std::string_view summary, std::string_view examples,
                      std::span<const ListedArgument> arguments, std::span<const ListedOption> options);

} // namespace gpusnoop
