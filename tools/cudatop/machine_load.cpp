// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/machine_load.hpp"

#include "base/fd.hpp"
#include "base/text.hpp"

namespace gpusnoop {

std::optional<MachineLoad> parse_machine_load(std::string_view stat)
{
    constexpr std::string_view key = "procs_running ", cpu = "cpu";
    MachineLoad load;
    std::optional<unsigned> running;
    while (!stat.empty()) {
        const std::string_view line = next_part(stat, '\n');
        // Skip the first line, "cpu  ", which is the sum.
        if (line.starts_with(cpu) && line.size() > cpu.size() && line[cpu.size()] >= '0' && line[cpu.size()] <= '9')
            load.cpus++;
        if (const auto number =
                line.starts_with(key) ? leading_number<unsigned>(line.substr(key.size())) : std::nullopt)
            running = number;
    }
    if (!running || load.cpus == 0)
        return std::nullopt;
    load.running = *running ? *running - 1 : 0;
    return load;
}

std::optional<MachineLoad> machine_load()
{
    constexpr size_t max = 1 << 20; // limit for the file, whose size depends on the number of CPUs and interrupts
    const auto text = read_text("/proc/stat", max);
    return text ? parse_machine_load(*text) : std::nullopt;
}

} // namespace gpusnoop
