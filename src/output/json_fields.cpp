// SPDX-License-Identifier: Apache-2.0
#include "output/json_fields.hpp"

#include "base/text.hpp"

#include <cmath>

namespace gpusnoop {

void JsonFields::text(std::string_view name, std::string_view value)
{
    key(name);
    append_json_string(out_, value);
}

void JsonFields::time(std::string_view name, uint64_t wall_ns)
{
    key(name);
    out_ += '"';
    time_.append_iso(out_, wall_ns);
    out_ += '"';
}

void JsonFields::cell(std::string_view name, Unit unit, const Cell& value)
{
    std::visit([&](const auto& content) { append(name, unit, content); }, value);
}

void JsonFields::cells(std::span<const Column> columns, const Row& row)
{
    for (size_t i = 0; i < columns.size(); ++i)
        if (columns[i].in_json)
            cell(columns[i].key, columns[i].unit, row.at(i));
}

void JsonFields::append(std::string_view name, Unit, const Dim3& value)
{
    key(name);
    append_format(out_, "[{},{},{}]", value[0], value[1], value[2]);
}

// Writes at most three decimals. Omits values that JSON cannot represent.
void JsonFields::append(std::string_view name, Unit, double value)
{
    if (!std::isfinite(value))
        return;
    key(name);
    if (std::fabs(value) >= 1e15) { // for such numbers, {:.3f} would print up to 309 digits
        append_format(out_, "{}", value);
        return;
    }
    append_format(out_, "{:.3f}", value);
    while (out_.back() == '0')
        out_.pop_back();
    if (out_.back() == '.')
        out_.pop_back();
}

template<typename Integer>
void JsonFields::append(std::string_view name, Unit unit, Integer value)
{
    if (unit == Unit::time)
        return time(name, static_cast<uint64_t>(value));
    if (unit != Unit::hex)
        return integer(name, value);
    key(name);
    append_format(out_, "\"{:#x}\"", static_cast<uint64_t>(value));
}

} // namespace gpusnoop
