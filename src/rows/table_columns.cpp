// SPDX-License-Identifier: Apache-2.0
#include "rows/table_columns.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iterator>
#include <string_view>

namespace gpusnoop {
namespace {

constexpr std::string_view units[] = {"text", "count",   "rate", "bytes", "us",
                                      "s",    "percent", "dim3", "hex",   "time"}; // as shown
constexpr std::string_view no_key = "-", of_calls = "calls", is_level = "level";
constexpr int width_max = 200;

std::string_view next_word(std::string_view& text)
{
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    return word;
}

} // namespace

std::vector<std::string> table_columns(std::span<const Column> columns)
{
    std::vector<std::string> all;
    for (const Column& column : columns)
        if (column.in_text && !column.header.empty())
            all.push_back(fmt::format("{} {} {} {}{}{}", column.header, column.key.empty() ? no_key : column.key,
                                      units[static_cast<size_t>(column.unit)], column.width,
                                      column.of_calls ? " calls" : "", column.is_level ? " level" : ""));
    return all;
}

RecordedColumns::RecordedColumns(std::span<const std::string> texts)
{
    for (const std::string& text : texts)
        add(text);
}

void RecordedColumns::add(const std::string& text)
{
    std::string_view rest = text;
    const std::string_view header = next_word(rest), key = next_word(rest), unit_name = next_word(rest),
                           width_text = next_word(rest);
    const auto* const unit = std::ranges::find(units, unit_name);
    int width = 0;
    const auto [end, error] = std::from_chars(width_text.data(), width_text.data() + width_text.size(), width);
    const bool plain = std::ranges::all_of(header, [](char c) { return c > ' ' && c < '\x7f'; });
    if (header.empty() || !plain || key.empty() || unit == std::end(units) || error != std::errc() || width < 0 ||
        width > width_max)
        return;
    Column column{names_.emplace_back(header), key == no_key ? std::string_view() : names_.emplace_back(key),
                  static_cast<Unit>(unit - std::begin(units)), static_cast<int16_t>(width)};
    for (std::string_view flag = next_word(rest); !flag.empty(); flag = next_word(rest)) {
        column.of_calls |= flag == of_calls;
        column.is_level |= flag == is_level;
    }
    all_.push_back(column);
}

} // namespace gpusnoop
