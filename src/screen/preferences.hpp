// SPDX-License-Identifier: Apache-2.0
// What somebody has chosen on a screen by keys, and wants to find there the next time.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// What is empty has not been chosen.
struct Preferences {
    struct Order {
        std::string column; // its key
        bool ascending = false;
        bool operator==(const Order&) const = default;
    };
    // Keys: what is shown, in its order, and what is not, though it is at first. Others are as they are at first.
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

// Empty: too short or too long for a screen.
std::optional<std::chrono::nanoseconds> interval_of(double seconds);

// As JSON.
std::string preferences_text(const Preferences& preferences);
// Of a text that anybody may have written. Throws Error, which says of the text what is wrong with it.
Preferences preferences_in(std::string_view text);

// What the newer ones say, and of the rest what the older ones do.
Preferences joined(const Preferences& older, const Preferences& newer);

} // namespace gpusnoop
