// SPDX-License-Identifier: Apache-2.0
// Numbers and texts in the cells of a row, computed from the row's counts. Unknown values are empty cells or nullopt.
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

// Cells for a count n of the interval; empty if the count is not known. known: true if the BPF program that counts n is
// attached.
Cell count_if(bool known, uint64_t n);
Cell rate_if(bool known, uint64_t n, const Context& c);
Cell bytes_per_second(uint64_t n, const Context& c);
Cell clock_cell(std::optional<double> seconds); // "0:42", "12:05", "3:00:00"

uint64_t bytes(const Group& g, std::initializer_list<direction> directions);
Cell small_share(const Group& g, const Context& c);
uint64_t errors(const Group& g);

// `ns` in percent of the waiting threads' time, as in WALL% of cudasync.
Cell share_of_time(const WaitGroup* group, const Context& c, std::optional<uint64_t> ns);
Cell scheduling(const Group& g, const Context& c, double Diagnosis::Scheduling::*part);
std::optional<uint64_t> spinning_ns(const Group& g, const Context& c);
std::optional<uint64_t> asleep_ns(const Group& g, const Context& c);

// Number of kernels started by graph launches; nullopt if the contents of all launched graphs are unknown.
std::optional<uint64_t> graph_kernels(const Group& g, const Context& c);
Cell graph_kernels_per_second(const Group& g, const Context& c);

// True if rows are whole processes or sums of whole processes. Some values are known only for such rows.
bool whole_processes(const Context& c);
Cell traced_memory(const Group& g, const Context& c); // bytes allocated while traced and not freed
// Memory as the driver reports it, including contexts and allocations made before tracing began. Falls back to
// traced_memory() if the driver does not report it.
Cell memory(const Key& k, const Group& g, const Context& c);
Cell memory_source(const Key& k, const Group& g, const Context& c);
// Seconds until a GPU of the row is full; nullopt if unknown, or more than a year.
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
