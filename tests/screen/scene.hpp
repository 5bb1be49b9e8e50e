// SPDX-License-Identifier: Apache-2.0
// Snapshots of a fictitious machine, the same in each run.
#pragma once

#include "rows/histogram.hpp"
#include "screen/snapshot.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <sstream>

namespace gpusnoop::scene {

struct Cast {
    size_t rows = 6;
    size_t gpus = 2;
};

inline constexpr uint64_t start_ns = 1767261600'000000000; // 2026-01-01 10:00:00 UTC

inline constexpr TopColumn columns[] = {
    {{"PID", "pid", Unit::count, 7}, "Process.", true, false, {}, true},
    {{"USER", "user", Unit::text, 8}, "User of the process.", true, false, {}, true},
    {{"COMM", "comm", Unit::text, 15}, "Name of the process.", true, false, {}, true},
    {{"POD", "pod", Unit::text, 12}, "Pod of the process.", false},
    {{"LAUNCH/s", "launches_per_second", Unit::rate, 8}, "Kernel launches per second.", true, false, {}, false, true},
    {{"GRAPH/s", "graph_launches_per_second", Unit::rate, 8}, "Graph launches per second."},
    {{"H2D/s", "h2d_bytes_per_second", Unit::bytes, 7}, "Bytes copied to the device per second."},
    {{"D2H/s", "d2h_bytes_per_second", Unit::bytes, 7}, "Bytes copied to the host per second."},
    {{"LIVE", "live_bytes", Unit::bytes, 7}, "Allocated device memory."},
    {{"SYNC%", "sync_percent", Unit::percent, 5}, "Share of time blocked in synchronization."},
    {{"P99(us)", "launch_latency_p99_ns", Unit::ns_as_us, 7}, "Launch latency.", true, false, "--latency"},
    {{"ERR/s", "errors_per_second", Unit::rate, 6}, "Failed calls per second."},
    {{"SM%", "sm_percent", Unit::percent, 5}, "Share of time that its kernels ran.", true, true},
    {{"DEVMEM", "device_memory_bytes", Unit::bytes, 7}, "Device memory reported by the driver.", false, true},
};

inline constexpr std::array names = {"trainer",           "copier", "leaker", "blocked", "\u8a13\u7df4\u5668",
                                     "evil\x1b[31m\nname"};

inline TopRow row_of(size_t i, uint64_t interval)
{
    const double share = static_cast<double>(i + 1);
    const auto wave = static_cast<uint64_t>(50 + 40 * std::sin(static_cast<double>(interval) / 5 + share));
    const std::string name = i < names.size() ? names[i] : fmt::format("worker{}", i);
    const Cell pod = i % 3 == 2 ? Cell{} : Cell(fmt::format("pod-{}", i % 3));
    return {fmt::format("{}", 1000 + i),
            i % 3 == 2 ? "" : fmt::format("pod-{}", i % 3),
            {uint64_t{1000 + i}, std::string(i % 2 ? "alice" : "bob"), name, pod, 100.0 * share,
             i == 0 ? Cell(12.5) : Cell{}, uint64_t{1 << 20} * (100 - std::min<size_t>(i, 99)), uint64_t{4096} * i,
             uint64_t{1 << 30} + interval * (i == 2 ? 1 << 20 : 0), static_cast<double>(wave), Cell{}, 0.0,
             i % 2 ? Cell{} : Cell(static_cast<double>(wave)), Cell{}}};
}

// Snapshot of an interval. Row i launches 100 x (i + 1) kernels a second; the more it launches, the less it copies.
inline Snapshot snapshot(const Cast& cast, uint64_t interval)
{
    Snapshot snapshot;
    snapshot.wall_ns = start_ns + interval * 1'000'000'000;
    snapshot.seconds = 1;
    snapshot.by = "pid";
    for (unsigned i = 0; i < cast.gpus; ++i)
        snapshot.gpus.push_back({i, "NVIDIA H100 80GB HBM3", i == 0 ? std::optional(45.0) : std::nullopt,
                                 i == 0 ? std::optional(350.0) : std::nullopt, uint64_t{12} << 30, uint64_t{80} << 30});
    snapshot.facts = {{"launches/s", "2100.0"},       {"processes", fmt::format("{}", cast.rows)},
                      {"probes", "120/120"},          {"lost", "0"},
                      {"own cost", "1.2% of a core"}, {"blind", "3 files", true}};
    snapshot.columns.assign(std::begin(columns), std::end(columns));
    double launches = 0;
    for (size_t i = 0; i < cast.rows; ++i) {
        snapshot.rows.push_back(row_of(i, interval));
        launches += 100.0 * static_cast<double>(i + 1);
    }
    Row total(snapshot.columns.size());
    total[4] = launches;
    snapshot.totals.push_back({"", "", total});
    return snapshot;
}

// Contents of an opened row.
inline std::vector<DetailPart> detail(const std::string& id, uint64_t interval)
{
    static constexpr Column kernels[] = {{"KERNEL", "kernel", Unit::text, 20}, {"LAUNCHES", "launches"}};
    DetailPart top{"kernels of " + id, {std::begin(kernels), std::end(kernels)}, {}, {}};
    for (uint64_t i = 0; i < 3; ++i)
        top.rows.push_back({fmt::format("void kernel_{}<float>(float*, int)", i), (3 - i) * 100 + interval});
    Histogram histogram;
    for (unsigned bucket = 20; bucket < 40; ++bucket)
        histogram.add(bucket, bucket);
    DetailPart sizes{"copies by size", {}, {}, {}};
    std::istringstream lines(star_histogram(histogram, "bytes"));
    for (std::string line; std::getline(lines, line);)
        sizes.lines.push_back(line);
    return {top, sizes};
}

} // namespace gpusnoop::scene
