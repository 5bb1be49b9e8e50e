// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/prices.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/json_strings.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>

namespace gpusnoop {
namespace {

constexpr size_t max_prices = 4096;
constexpr uint64_t max_price_micros = 1'000'000 * micros_per_unit; // limit of a price per hour

bool is_currency(std::string_view text)
{
    return text.size() == 3 && std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

// The start of a day ("2026-01-31") in UTC.
std::optional<uint64_t> day_ns(std::string_view text)
{
    int year = 0;
    unsigned month = 0, day = 0;
    const auto number = [&](size_t at, size_t size, auto& value) {
        const char* const end = text.data() + at + size;
        return std::from_chars(text.data() + at, end, value).ptr == end;
    };
    if (text.size() != 10 || text[4] != '-' || text[7] != '-' || !number(0, 4, year) || !number(5, 2, month) ||
        !number(8, 2, day))
        return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
    if (!date.ok() || year < 1970 || year > 2200)
        return std::nullopt;
    return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::sys_days(date).time_since_epoch()).count());
}

} // namespace

std::optional<uint64_t> parse_price(std::string_view text)
{
    uint64_t micros = 0;
    size_t decimals = 0;
    bool point = false, digit = false;
    for (const char c : text) {
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9' || (point && ++decimals > 6) || micros >= max_price_micros)
            return std::nullopt;
        digit = true;
        micros = micros * 10 + static_cast<uint64_t>(c - '0');
    }
    for (; decimals < 6; decimals++)
        micros *= 10;
    return digit && micros < max_price_micros ? std::optional(micros) : std::nullopt;
}

std::string money_text(uint64_t micros, std::string_view currency)
{
    const uint64_t cents = micros / 10'000 + (micros % 10'000 >= 5'000);
    const std::string number = fmt::format("{}.{:02}", cents / 100, cents % 100);
    if (currency == "USD")
        return "$" + number;
    if (currency == "EUR")
        return "€" + number;
    if (currency == "GBP")
        return "£" + number;
    return fmt::format("{} {}", number, currency);
}

std::string read_list(std::string_view what, const std::string& path)
{
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat st {};
    if (!file || fstat(file.get(), &st) != 0)
        throw Error(fmt::format("cannot read {} from '{}': {}", what, path, errno_text(errno)));
    if (!S_ISREG(st.st_mode))
        throw Error(fmt::format("cannot read {} from '{}': not a regular file", what, path));
    auto text = read_text(file, max_list_size);
    if (!text)
        throw Error(fmt::format("cannot read {} from '{}': {}", what, path, errno_text(errno)));
    if (text->size() > max_list_size)
        throw Error(fmt::format("cannot read {} from '{}': larger than {}", what, path, prose_bytes(max_list_size)));
    return std::move(*text);
}

Prices Prices::of_file(const std::string& path, const std::string& node)
{
    return {read_list("prices (--prices)", path), path, node};
}

Prices::Prices(std::string_view text, const std::string& file, const std::string& node) : node_(node)
{
    if (trimmed(text.substr(0, text.find('\n'))).starts_with('{')) {
        std::optional<uint64_t> price;
        const bool read = each_json_string(text, [&](const JsonPath& at, const std::string& value) {
            if (at.size() == 1 && at[0] == "GPU")
                price = parse_price(value);
        });
        if (!read || !price)
            throw Error(fmt::format(
                "'{}' is not a price file: JSON must have the key \"GPU\" with a price per hour in quotes, as "
                "in OpenCost's custom pricing",
                file));
        rows_.push_back({.glob = "*", .micros = *price});
        return;
    }
    size_t number = 0;
    for (std::string_view rest = text; !rest.empty();) {
        std::string_view text_and_comment = next_part(rest, '\n');
        const std::string_view line = trimmed(next_part(text_and_comment, '#'));
        const bool heading = number == 0 && line.starts_with("gpu_model_glob");
        number++;
        if (!line.empty() && !heading)
            add_line(line, fmt::format("'{}', line {}", file, number));
    }
    if (rows_.empty())
        throw Error(fmt::format("'{}' contains no prices", file), "a line is MODEL_GLOB,PRICE_PER_GPU_HOUR[,CURRENCY]");
}

void Prices::add_line(std::string_view line, const std::string& where)
{
    constexpr const char* form = "a line is MODEL_GLOB,PRICE_PER_GPU_HOUR[,CURRENCY[,VALID_FROM[,NODE_GLOB]]], as in "
                                 "*H100*,2.95,USD,2026-01-31,gpu-*";
    std::vector<std::string_view> fields;
    for (size_t at = 0, end = 0; end != std::string_view::npos; at = end + 1) {
        end = line.find(',', at);
        fields.push_back(trimmed(line.substr(at, end - at)));
    }
    const size_t field_count = fields.size();
    fields.resize(std::max<size_t>(field_count, 5));
    const auto price = parse_price(fields[1]);
    const auto from_ns = fields[3].empty() ? std::optional<uint64_t>(0) : day_ns(fields[3]);
    const bool named = field_count < 3 || is_currency(fields[2]) || (field_count > 3 && fields[2].empty());
    if (fields[0].empty() || !price || !named || !from_ns || field_count > 5 || (field_count == 5 && fields[4].empty()))
        throw Error(fmt::format("{} is not a price: '{}'", where, printable(line.substr(0, 200))), form);
    const std::string_view currency = fields[2].empty() ? std::string_view(currency_) : fields[2];
    if (!rows_.empty() && currency != currency_)
        throw Error(
            fmt::format("{}: all prices must have the same currency, not {} and {}", where, currency_, currency));
    if (rows_.size() == max_prices)
        throw Error(fmt::format("{}: there are more than {} prices", where, max_prices));
    currency_ = std::string(currency);
    rows_.push_back({std::string(fields[0]), *price, *from_ns, fields[4].empty() ? "*" : std::string(fields[4])});
}

std::optional<uint64_t> Prices::of(std::string_view model, uint64_t wall_ns) const
{
    const auto matches = [](const std::string& glob, const std::string& name) {
        return fnmatch(glob.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
    };
    const std::string name(model);
    const Row* found = nullptr;
    for (const Row& row : rows_)
        if (row.from_ns <= wall_ns &&
            (found ? row.glob == found->glob && row.node == found->node && row.from_ns > found->from_ns
                   : matches(row.glob, name) && matches(row.node, node_)))
            found = &row;
    return found ? std::optional(found->micros) : std::nullopt;
}

} // namespace gpusnoop
