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
    // JSON keys of the shown columns, in their order, and of columns that the user has hidden. Columns in neither list
    // are shown if they are shown by default.
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

// The interval; nullopt if it is not 0.1 to 60 s.
std::optional<std::chrono::nanoseconds> interval_of(double seconds);

// The preferences as JSON.
std::string preferences_text(const Preferences& preferences);
// Parses untrusted text. Throws Error with a message that states what is wrong with it.
Preferences preferences_in(std::string_view text);

// The newer preferences, with the older ones for settings that are not in the newer.
Preferences joined(const Preferences& older, const Preferences& newer);

} // namespace gpusnoop
