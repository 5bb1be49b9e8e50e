// SPDX-License-Identifier: Apache-2.0
// Settings that the user has changed with keys on a screen, which are saved for the next run.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// Members without a value were not changed by the user.
struct Preferences {
    struct Order {
        std::string column; // key of the column
        bool ascending = false;
        bool operator==(const Order&) const = default;
    };
    // JSON keys of the shown columns, in order, and JSON keys of the columns that the user has hidden. A column in
    // neither list is shown if it is shown by default.
    struct Columns {
        std::vector<std::string> shown;
        std::vector<std::string> hidden;
        bool operator==(const Columns&) const = default;
    };

    std::optional<std::string> by{};
    std::optional<Order> order{};
    std::optional<Columns> columns{};
    std::optional<std::chrono::nanoseconds> interval{};
    std::optional<bool> tree{};
    std::optional<bool> mouse{};
    std::optional<bool> colours{};

    bool operator==(const Preferences&) const = default;
};

// Converts seconds to an interval. Returns nullopt if it is not between 0.1 and 60 s.
std::optional<std::chrono::nanoseconds> interval_of(double seconds);

// The preferences as JSON.
std::string preferences_text(const Preferences& preferences);
// Parses untrusted text. Throws Error with a description of the first mistake.
Preferences preferences_in(std::string_view text);

// Combines preferences. A setting comes from `newer` if it is set there, else from `older`.
Preferences joined(const Preferences& older, const Preferences& newer);

} // namespace gpusnoop
