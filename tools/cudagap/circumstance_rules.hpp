// SPDX-License-Identifier: Apache-2.0
// What around a process holds it up, in words: a table of rules, each of which speaks for itself.
#pragma once

#include "tools/cudagap/circumstances.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct CircumstanceRule {
    std::string_view name;
    std::optional<std::string> (*look)(const Circumstances&);
};

std::span<const CircumstanceRule> circumstance_rules();

// Of all rules that speak, in the table's order.
std::vector<std::string> circumstance_words(const Circumstances& around);

} // namespace gpusnoop
