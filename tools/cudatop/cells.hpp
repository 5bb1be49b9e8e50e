// SPDX-License-Identifier: Apache-2.0
// Figures and texts for the cells of a row, derived from its counts. An unknown value is an empty cell or nullopt.
#pragma once

#include "tools/cudatop/columns.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace gpusnoop::cudatop {

template<class Part, class Member>
uint64_t of(const Part* part, Member Part::*member)
{
    return part ? part->*member : 0;
}

template<class Group, class Member>
uint64_t sum(std::span<const Group* const> groups, Member Group::*member)
{
    uint64_t all = 0;
    for (const Group* group : groups)
        all += group ? group->*member : 0;
    return all;
}

// Figures of the interval; empty unless `known`: whether the BPF program that counts the figure is attached.
Cell count_if(bool known, uint64_t n);
Cell rate_if(bool known, uint64_t n, const Context& c);
Cell bytes_per_second(uint64_t n, const Context& c);
Cell clock_cell(std::optional<double> seconds); // "0:42", "12:05", "3:00:00"

uint64_t bytes(const Group& g, std::initializer_list<direction> directions);
Cell small_share(const Group& g, const Context& c);
uint64_t errors(const Group& g);

// `ns` as a share of the waiting threads' time, like WALL% of cudasync.
Cell share_of_time(const WaitGroup* group, const Context& c, std::optional<uint64_t> ns);
Cell scheduling(const Group& g, const Context& c, double Diagnosis::Scheduling::*part);
std::optional<uint64_t> spinning_ns(const Group& g, const Context& c);
std::optional<uint64_t> asleep_ns(const Group& g, const Context& c);

// Kernels started by graph launches; unknown if the contents of all launched graphs are unknown.
std::optional<uint64_t> graph_kernels(const Group& g, const Context& c);
Cell graph_kernels_per_second(const Group& g, const Context& c);

// True if rows are whole processes, or sums of them. Some figures are known only for such rows.
bool whole_processes(const Context& c);
Cell traced_memory(const Group& g, const Context& c); // allocated while traced
// Memory as NVML reports it (including contexts and earlier allocations); if that is unknown, traced_memory().
Cell memory(const Key& k, const Group& g, const Context& c);
Cell memory_source(const Key& k, const Group& g, const Context& c);
// nullopt if it is unknown, or more than a year.
std::optional<double> full_in_seconds(const Group& g, const Context& c);

Cell user(const Group& g, const Context& c);
Cell pod_or_command(const Group& g, const Context& c);

// The worst verdict on the row.
Cell trouble(const Key& k, const Group& g, const Context& c);
Cell marked_trouble(const Key& k, const Group& g, const Context& c); // "!!hangs"
Cell severity(const Key& k, const Group& g, const Context& c);
Cell last_xid(const Group& g, const Context& c);
Cell xids(const Group& g, const Context& c); // number of GPU errors (Xids)

} // namespace gpusnoop::cudatop
