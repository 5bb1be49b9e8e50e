// SPDX-License-Identifier: Apache-2.0
// Metrics page in the Prometheus text format 0.0.4, built from the rows that --json prints. Each metric family takes
// its values from one column of the rows. The labels come from the columns that identify a row.
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

    // Begins an interval. Then pass the interval's rows to add(). A row's column "by" or "of" contains the kind of the
    // row, such as "pod". now_ns (CLOCK_MONOTONIC) and wall_ns: end of the interval.
    void begin_rows(uint64_t now_ns, uint64_t wall_ns);
    void add(std::span<const Column> columns, const Row& row);
    // Ends the interval. Removes gauges without a value in this interval, and series without a row for ten minutes.
    void end_report();

    // The page, ending in a newline. Each family has HELP and TYPE lines, even if it has no series.
    std::string text() const;

private:
    struct Series {
        uint64_t sum = 0;       // value of a counter, in the unit of the column
        double value = 0;       // value of a gauge
        bool in_report = false; // true if the current interval has a value
    };
    struct Labelled {
        std::map<size_t, Series> series; // by index of the metric family
        uint64_t seen_ns = 0;
    };

    std::string tool_, version_;
    std::map<std::string, Labelled> rows_; // rows that have series; the key is the text of their labels, without braces
    uint64_t now_ns_ = 0;
    uint64_t wall_ns_ = 0;
    uint64_t left_out_ = 0;
};

} // namespace gpusnoop
