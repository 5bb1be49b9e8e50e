// SPDX-License-Identifier: Apache-2.0
#include "process_line.hpp"

#include "who.hpp"

namespace gpusnoop {

std::vector<Column> process_line_columns(std::initializer_list<Column> own)
{
    std::vector<Column> all = {
        {"TIME", "time", Unit::time, 8},
        {"PID", "pid", Unit::count, 7},
        {"COMM", "comm", Unit::text, 15},
        {"OWNER", "", Unit::text, 40, true, false},
    };
    for (const OwnerKey& each : owner_keys)
        all.push_back({"", each.key, each.unit, 0, false});
    all.insert(all.end(), own);
    return all;
}

Row process_line(const ImageId& image, Processes& processes, uint64_t wall_ns, std::initializer_list<Cell> own)
{
    const Owner& owner = processes.owner(image, {});
    Row row{wall_ns, uint64_t{image.pid}, processes.info(image).comm, owner_cell(owner, OwnerPart::text)};
    for (const OwnerKey& each : owner_keys)
        row.push_back(owner_cell(owner, each.part));
    row.insert(row.end(), own);
    return row;
}

} // namespace gpusnoop
