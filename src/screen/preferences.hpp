// SPDX-License-Identifier: Apache-2.0
// Settings that the user has changed by keys on a screen, saved for the next run.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// An empty member was not changed by the user.
struct Preferences {
    struct Order {
        std::string column; // key of the column
        bool ascending = false;
        bool operator==(const Order&) const = default;
    };
    // Keys of the shown columns, in their order, and of default columns that the user has hidden. Columns in neither
    // list have their default.
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

// nullopt if it is not 0.1 to 60 s.
std::optional<std::chrono::nanoseconds> interval_of(double seconds);

// As JSON.
std::string preferences_text(const Preferences& preferences);
// Parses untrusted text. Throws Error that states what is wrong with it.
Preferences preferences_in(std::string_view text);

// The newer preferences, completed by the older ones.
Preferences joined(const Preferences& older, const Preferences& newer);

} // namespace gpusnoop
