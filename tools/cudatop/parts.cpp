// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/parts.hpp"

#include <sstream>
#include <utility>

namespace gpusnoop::cudatop {

void PartsOutput::begin_table(std::span<const Column> columns, uint64_t, uint64_t)
{
    DetailPart part;
    part.title = std::exchange(title_, {});
    for (const Column& column : columns)
        if (column.in_text)
            part.columns.push_back(column);
    parts_.push_back(std::move(part));
}

void PartsOutput::row(std::span<const Column> columns, const Row& row, ExtraLines below)
{
    DetailPart& part = parts_.back();
    Row shown;
    for (size_t i = 0; i < columns.size(); i++)
        if (columns[i].in_text)
            shown.push_back(row[i]);
    part.rows.push_back(std::move(shown));
    part.below.emplace_back(below.lines.begin(), below.lines.end());
}

void PartsOutput::histogram(std::string_view title, std::string_view unit, const Histogram& histogram,
                            std::span<const std::pair<std::string_view, Cell>>, uint64_t, const BucketNotes& notes)
{
    DetailPart part;
    part.title = std::exchange(title_, {});
    if (!title.empty())
        part.lines.emplace_back(title);
    std::istringstream stars(star_histogram(histogram, unit, notes));
    for (std::string line; std::getline(stars, line);)
        part.lines.push_back(std::move(line));
    parts_.push_back(std::move(part));
}

std::vector<DetailPart> PartsOutput::take()
{
    std::erase_if(parts_, [](const DetailPart& part) { return part.rows.empty() && part.lines.empty(); });
    for (DetailPart& part : parts_)
        if (part.rows.empty())
            part.columns.clear();
    return std::exchange(parts_, {});
}

} // namespace gpusnoop::cudatop
