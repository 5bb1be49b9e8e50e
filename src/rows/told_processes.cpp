// SPDX-License-Identifier: Apache-2.0
#include "rows/told_processes.hpp"

#include "rows/who.hpp"

#include <vector>

namespace gpusnoop {
namespace {

constexpr uint64_t again_after_ns = 60'000'000'000;
constexpr size_t told_max = 65'536; // more are told again

std::vector<Column> columns_of_process()
{
    std::vector<Column> all{{"", "pid", Unit::count},
                            {"", "ns_pid", Unit::count},
                            {"", "process_start_ns", Unit::count},
                            {"", "comm", Unit::text},
                            {"", "command_line", Unit::text}};
    for (const OwnerKey& each : owner_keys)
        all.push_back({"", each.key, each.unit});
    return all;
}

} // namespace

void ToldProcesses::tell(Output& output, const ImageId& image, const cgroups& ids, uint64_t time_ns)
{
    const auto [told, is_new] = told_ns_.try_emplace(image, time_ns);
    if (!is_new && time_ns < told->second + again_after_ns)
        return;
    told->second = time_ns;
    if (told_ns_.size() > told_max)
        told_ns_.clear();
    static const std::vector<Column> columns = columns_of_process();
    const Owner& owner = processes_.owner(image, ids);
    WhoSeen seen;
    seen.add(image, owner);
    Row row{pid_cell(seen), ns_pid_cell(seen, processes_), start_cell(seen, processes_),
            comm_cell({}, seen, processes_), command_line_cell(seen, processes_)};
    for (const OwnerKey& each : owner_keys)
        row.push_back(owner_cell(owner, each.part));
    output.process(columns, row);
}

} // namespace gpusnoop
