// SPDX-License-Identifier: Apache-2.0
// What flames can be as wide as: columns of rows that add up.
#pragma once

#include "rows/table.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace gpusnoop {

struct Weight {
    std::string_view key;  // of the column
    std::string_view text; // "kernel launches"
};

enum class WeightUnit : uint8_t { count, bytes, nanoseconds };
WeightUnit unit_of(const Weight& weight);

// By name; null where there is none.
const Weight* find_weight(std::string_view key);
std::string weight_names(); // "launches, bytes"

// What rows with these columns are weighed by where nobody says: null where they have nothing that adds up.
const Weight* usual_weight(std::span<const Column> columns);
// Lines without a figure of their own count as one each.
extern const Weight lines_weight;
const Weight* usual_line_weight(std::span<const Column> columns);

// nullopt where it is not known.
std::optional<uint64_t> weight_in(std::span<const Column> columns, const Row& row, std::string_view key);

// The column with that key; one behind the last where there is none.
size_t column_of(std::span<const Column> columns, std::string_view key);

} // namespace gpusnoop
