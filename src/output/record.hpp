// SPDX-License-Identifier: Apache-2.0
// A line of JSON as tools print it: keys with texts, numbers, the three of a grid or a list of texts. What is nested
// otherwise is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace gpusnoop {

class Record {
public:
    // nullopt where the text is no such object, or is larger or nests deeper than what any tool prints.
    static std::optional<Record> parse(std::string_view line);

    using Numbers = std::vector<double>;
    using Texts = std::vector<std::string>;
    using Value = std::variant<double, std::string, Numbers, Texts>;

    // One that nobody has printed.
    explicit Record(std::vector<std::pair<std::string, Value>> values = {}) : values_(std::move(values)) {}

    const Value* value(std::string_view key) const; // null where there is no such key
    // Empty, or nullopt, where there is no such key, or it is of another kind.
    std::string_view text(std::string_view key) const;
    std::optional<double> number(std::string_view key) const;
    std::optional<double> product(std::string_view key) const; // of [x,y,z]
    const Texts* texts(std::string_view key) const;            // null where it has no such list

    std::string_view type() const { return text("type"); }

    const std::vector<std::pair<std::string, Value>>& all() const { return values_; }

private:
    template<class T>
    const T* find(std::string_view key) const;

    std::vector<std::pair<std::string, Value>> values_;
};

// What a line says that was lost, of all kinds together; 0 where it is about something else.
uint64_t lost_in(const Record& record);

// Nanoseconds since the epoch of "2026-01-01T10:00:00.000000+00:00".
std::optional<double> wall_ns_of(std::string_view time);

} // namespace gpusnoop
