// SPDX-License-Identifier: Apache-2.0
// Prices per GPU hour by model, from the user's file (--prices), which may also be OpenCost's custom pricing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// Amounts of money are integers, in millionths of the currency's unit.
constexpr uint64_t micros_per_unit = 1'000'000;

class Prices {
public:
    Prices() = default; // no prices
    // text: lines of MODEL_GLOB,PRICE_PER_GPU_HOUR[,CURRENCY[,VALID_FROM[,NODE_GLOB]]]. The first line that matches
    // applies. If several lines have the same globs as that line, the one that became valid last applies. # begins a
    // comment. A first line that begins with "gpu_model_glob" is a heading. The text may also be a JSON object with
    // OpenCost's key "GPU". Throws Error, which names the file and the line. node: name of this machine.
    Prices(std::string_view text, const std::string& file, const std::string& node = {});
    // Also throws Error if the file cannot be read.
    static Prices of_file(const std::string& path, const std::string& node = {});

    // Price per hour at a point in time (CLOCK_REALTIME), in millionths of the currency's unit; nullopt if no line
    // matches.
    std::optional<uint64_t> of(std::string_view model, uint64_t wall_ns = UINT64_MAX) const;
    const std::string& currency() const { return currency_; }

private:
    struct Row {
        std::string glob;
        uint64_t micros;
        uint64_t from_ns = 0; // start of validity, CLOCK_REALTIME
        std::string node = "*";
    };
    void add_line(std::string_view line, const std::string& where);

    std::vector<Row> rows_;
    std::string currency_ = "USD";
    std::string node_;
};

// "2.5" -> 2,500,000. nullopt if the text is not a number from 0 to below 1,000,000 with at most six decimals.
std::optional<uint64_t> parse_price(std::string_view text);
// Rounded to two decimals, with a symbol for dollars, euros and pounds: "$71.02", "71.02 CHF".
std::string money_text(uint64_t micros, std::string_view currency);

// Size limit of --prices and --teams, which must be regular files.
constexpr size_t max_list_size = 1 << 20;
// Reads a file given by --prices or --teams. Throws Error. what: name of the file's contents in error messages, such as
// "prices (--prices)".
std::string read_list(std::string_view what, const std::string& path);

} // namespace gpusnoop
