// SPDX-License-Identifier: Apache-2.0
// What the reports of a run add up to, as Prometheus reads it (text format 0.0.4). It is fed with the rows that --json
// has: a family takes the column with its key (page.cpp), labels are the columns that say whose a row is.
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

    // Rows of one kind of an interval that ends now (CLOCK_MONOTONIC, wall clock); the kind is in their column "by", or
    // "of".
    void begin_rows(uint64_t now_ns, uint64_t wall_ns);
    void add(std::span<const Column> columns, const Row& row);
    // All rows of the interval have been added: gauges that were not told in it leave, and so does whoever has had no
    // row for ten minutes.
    void end_report();

    // Ends with a newline; each family has its HELP and TYPE, also where it has no series yet.
    std::string text() const;

private:
    struct Series {
        uint64_t sum = 0; // of counts, in the column's unit
        double value = 0; // of gauges
        bool told = false;
    };
    struct Labelled {
        std::map<size_t, Series> series; // by number of the family
        uint64_t seen_ns = 0;
    };

    std::string tool_, version_;
    std::map<std::string, Labelled> rows_; // by labels as they are written, without braces
    uint64_t now_ns_ = 0;
    uint64_t wall_ns_ = 0;
    uint64_t left_out_ = 0;
};

} // namespace gpusnoop
