// SPDX-License-Identifier: Apache-2.0
// What an hour of a device costs, by its model: from a file that the user writes, or OpenCost's custom pricing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// Money in whole millionths of the currency's unit.
constexpr uint64_t micros_per_unit = 1'000'000;

class Prices {
public:
    Prices() = default; // none is known
    // Lines of MODEL_GLOB,PRICE_PER_GPU_HOUR[,CURRENCY[,VALID_FROM[,NODE_GLOB]]], the first match counts; of lines that
    // match the same, the latest that is valid by then. # begins a comment, and a first line that begins with
    // "gpu_model_glob" is a heading. Or a JSON object with OpenCost's key "GPU". Throws Error, which names the file and
    // the line. node: what this machine is called.
    Prices(std::string_view text, const std::string& file, const std::string& node = {});
    // Throws Error, too, where it cannot be read.
    static Prices of_file(const std::string& path, const std::string& node = {});

    // Millionths per hour, at a time of day; nullopt: no line has this model on this node by then.
    std::optional<uint64_t> of(std::string_view model, uint64_t wall_ns = UINT64_MAX) const;
    const std::string& currency() const { return currency_; }

private:
    struct Row {
        std::string glob;
        uint64_t micros;
        uint64_t from_ns = 0; // when it begins, time of day
        std::string node = "*";
    };
    void add_line(std::string_view line, const std::string& where);

    std::vector<Row> rows_;
    std::string currency_ = "USD";
    std::string node_;
};

// "2.5" -> 2,500,000. nullopt: it is no price, negative, of more than six decimals, or a million and more.
std::optional<uint64_t> parse_price(std::string_view text);
// With two decimals, rounded, and the usual sign in front of dollars, euros and pounds: "$71.02", "71.02 CHF".
std::string money_text(uint64_t micros, std::string_view currency);

// Files that the user names on the command line: regular, and no larger than that.
constexpr size_t largest_list = 1 << 20;
// Throws Error; what: "prices (--prices)".
std::string read_list(std::string_view what, const std::string& path);

} // namespace gpusnoop
