// SPDX-License-Identifier: Apache-2.0
// What a tool prints, as parts of a page.
#pragma once

#include "rows/output.hpp"
#include "screen/snapshot.hpp"

#include <string>
#include <vector>

namespace gpusnoop::cudatop {

class PartsOutput : public Output {
public:
    // What is printed from here on stands below this title.
    void title(std::string text) { title_ = std::move(text); }
    void add(DetailPart part) { parts_.push_back(std::move(part)); }
    // Those that have something in them.
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
