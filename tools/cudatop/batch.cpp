// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/batch.hpp"

#include <cmath>
#include <vector>

namespace gpusnoop::cudatop {
namespace {

const Column by_column{"", "by", Unit::text};

uint64_t interval_ns(const Snapshot& snapshot)
{
    return static_cast<uint64_t>(std::llround(snapshot.seconds * 1e9));
}

// Replaces an empty cell by text. A column that names the row shows "(no pod)" or similar. A column whose values are
// from the GPU's own counters (NVML) shows "n/a".
Cell for_people(const TopColumn& column, const TopRow& row, const Cell& cell)
{
    if (shows_none(column, row) && std::holds_alternative<std::monostate>(cell))
        return row.none;
    return column.device_side && std::holds_alternative<std::monostate>(cell) ? Cell(std::string("n/a")) : cell;
}

void print_gpus(Output& output, const Snapshot& snapshot)
{
    const Column columns[] = {by_column,
                              {"", "gpu_index", Unit::count},
                              {"", "gpu_name", Unit::text},
                              {"", "gpu_percent", Unit::percent},
                              {"", "gpu_used_bytes", Unit::bytes},
                              {"", "gpu_total_bytes", Unit::bytes},
                              {"", "gpu_watts", Unit::rate},
                              {"", "gpu_users", Unit::text}};
    output.begin_table(columns, snapshot.wall_ns, interval_ns(snapshot));
    for (const GpuState& gpu : snapshot.gpus)
        output.row(columns,
                   {std::string("gpu"), uint64_t{gpu.index}, gpu.name.empty() ? Cell() : Cell(gpu.name),
                    cell_if(gpu.utilization), cell_if(gpu.memory_used), cell_if(gpu.memory_total),
                    cell_if(gpu.power_watts), gpu.users.empty() ? Cell() : Cell(gpu.users)},
                   {});
}

} // namespace

void print_text(Output& output, const Snapshot& snapshot, const Arrangement& arrangement, size_t rows)
{
    std::vector<Column> columns;
    for (const TopColumn& column : snapshot.columns)
        if (column.shown)
            columns.push_back(column.column);
    output.begin_table(columns, snapshot.wall_ns, interval_ns(snapshot));
    std::vector<const TopRow*> lines = arrange(snapshot, arrangement);
    if (rows && lines.size() > rows)
        lines.resize(rows);
    for (const TopRow* line : lines) {
        Row row;
        for (size_t i = 0; i < snapshot.columns.size(); i++)
            if (snapshot.columns[i].shown)
                row.push_back(for_people(snapshot.columns[i], *line, line->cells[i]));
        output.row(columns, row, {});
    }
}

void print_json(Output& output, const Snapshot& snapshot, const Arrangement& arrangement)
{
    std::vector<Column> columns{by_column};
    for (const TopColumn& column : snapshot.columns)
        columns.push_back(column.column);
    output.begin_table(columns, snapshot.wall_ns, interval_ns(snapshot));
    auto print = [&](const std::string& by, const TopRow& row) {
        Row cells{by};
        cells.insert(cells.end(), row.cells.begin(), row.cells.end());
        output.row(columns, cells, {});
    };
    if (const auto sum = sum_line(snapshot, arrangement))
        print("total", *sum);
    for (const TopRow* row : arrange(snapshot, arrangement))
        print(snapshot.by, *row);
    if (!snapshot.gpus.empty())
        print_gpus(output, snapshot);
}

} // namespace gpusnoop::cudatop
