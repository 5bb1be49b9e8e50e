// SPDX-License-Identifier: Apache-2.0
// An output that collects tables and histograms as parts of a screen page.
#pragma once

#include "rows/output.hpp"
#include "screen/snapshot.hpp"

#include <string>
#include <vector>

namespace gpusnoop::cudatop {

class PartsOutput : public Output {
public:
    // Sets the title of the next table or histogram.
    void title(std::string text) { title_ = std::move(text); }
    void add(DetailPart part) { parts_.push_back(std::move(part)); }
    // Returns the parts that are not empty, and removes all parts.
    std::vector<DetailPart> take();

    void begin_table(std::span<const Column> columns, uint64_t wall_ns, uint64_t interval_ns) override;
    void row(std::span<const Column> columns, const Row& row, ExtraLines below) override;
    void histogram(std::string_view title, std::string_view unit, const Histogram& histogram,
                   std::span<const std::pair<std::string_view, Cell>> fields, uint64_t wall_ns,
                   const BucketNotes& notes) override;

    void lost(std::span<const Loss>) override {}
    void flush() override {}

private:
    std::string title_;
    std::vector<DetailPart> parts_;
};

} // namespace gpusnoop::cudatop
