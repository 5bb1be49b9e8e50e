// SPDX-License-Identifier: Apache-2.0
// Writer for the fields of a JSON record, used by the JSON output and for saved screens.
#pragma once

#include "base/clock.hpp"
#include "rows/table.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>

namespace gpusnoop {

// Appends fields to a string, which must outlive this object. Call begin() first, because every other function writes a
// comma before its field.
class JsonFields {
public:
    explicit JsonFields(std::string& to) : out_(to) {}

    void begin(std::string_view type) { out_.append(R"({"type":")").append(type).append("\""); }
    void key(std::string_view name) { out_.append(",\"").append(name).append("\":"); }
    void text(std::string_view name, std::string_view value);
    void time(std::string_view name, uint64_t wall_ns);
    void cell(std::string_view name, Unit unit, const Cell& value); // writes no field if the cell is empty
    void cells(std::span<const Column> columns, const Row& row);

    template<typename Integer>
    void integer(std::string_view name, Integer value)
    {
        key(name);
        const fmt::format_int digits(value);
        out_.append(digits.data(), digits.size());
    }

private:
    void append(std::string_view, Unit, std::monostate) {}
    void append(std::string_view name, Unit, const std::string& value) { text(name, value); }
    void append(std::string_view name, Unit, const Dim3& value);
    void append(std::string_view name, Unit, double value);
    void append(std::string_view name, Unit unit, AtLeast value) { append(name, unit, value.count); }
    void append(std::string_view name, Unit unit, const Estimate& value)
    {
        std::visit([&](auto figure) { append(name, unit, figure); }, value.value);
    }
    template<typename Integer>
    void append(std::string_view name, Unit unit, Integer value);

    std::string& out_;
    LocalTime time_;
};

} // namespace gpusnoop
