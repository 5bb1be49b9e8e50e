// SPDX-License-Identifier: Apache-2.0
// Metrics page in the Prometheus text format 0.0.4. Fed with the same rows as --json: a metric family takes the column
// with its key, and labels come from the columns that identify a row.
#pragma once

#include "rows/table.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

class MetricsPage {
public:
    MetricsPage(std::string_view tool, std::string_view version);

    // The rows of an interval that ends now (CLOCK_MONOTONIC, wall clock) follow. Their kind is in their column "by" or
    // "of".
    void begin_rows(uint64_t now_ns, uint64_t wall_ns);
    void add(std::span<const Column> columns, const Row& row);
    // Ends the interval: removes gauges without a value in it, and series without a row for ten minutes.
    void end_report();

    // Ends with a newline. Each family has HELP and TYPE lines, even without series.
    std::string text() const;

private:
    struct Series {
        uint64_t sum = 0;       // for counters, in the unit of the column
        double value = 0;       // for gauges
        bool in_report = false; // has a value in the current interval
    };
    struct Labelled {
        std::map<size_t, Series> series; // by index of the family
        uint64_t seen_ns = 0;
    };

    std::string tool_, version_;
    std::map<std::string, Labelled> rows_; // by the text of the labels, without braces
    uint64_t now_ns_ = 0;
    uint64_t wall_ns_ = 0;
    uint64_t left_out_ = 0;
};

} // namespace gpusnoop
