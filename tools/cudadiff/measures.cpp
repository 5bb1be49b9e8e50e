// SPDX-License-Identifier: Apache-2.0
#include "tools/cudadiff/measures.hpp"

#include <algorithm>
#include <iterator>

namespace gpusnoop::cudadiff {
namespace {

using enum Shape;
using enum Family;

// cudalaunch and cudamemcpy record times only with -l. A missing time is therefore unknown, not zero.
constexpr Measure all[] = {
    {.name = "launches", .text = "launches", .sources = {{"cudalaunch", "launches"}, {"cudatop", "launches"}}},
    {.name = "launch-time",
     .text = "time in launch calls",
     .kind = MeasureKind::time,
     .sources = {{"cudalaunch", "latency_total_ns"}}},
    {.name = "launch-errors", .text = "failed launches", .sources = {{"cudalaunch", "errors"}}, .optional = true},
    {.name = "grid-p50",
     .text = "blocks per grid, p50",
     .kind = MeasureKind::size,
     .sources = {{"cudalaunch", "blocks_p50", "launches"}},
     .percentile = 0.50},
    {.name = "grid-p95",
     .text = "blocks per grid, p95",
     .kind = MeasureKind::size,
     .sources = {{"cudalaunch", "blocks_p95", "launches"}},
     .percentile = 0.95},
    {.name = "block-p50",
     .text = "threads per block, p50",
     .kind = MeasureKind::size,
     .sources = {{"cudalaunch", "threads_p50", "launches"}},
     .percentile = 0.50},
    {.name = "block-p95",
     .text = "threads per block, p95",
     .kind = MeasureKind::size,
     .sources = {{"cudalaunch", "threads_p95", "launches"}},
     .percentile = 0.95},
    {.name = "kernel", .text = "launches", .sources = {{"cudalaunch", "launches"}}, .split = "kernel"},
    {.name = "kernel-grid",
     .text = "blocks per grid, p50",
     .kind = MeasureKind::size,
     .sources = {{"cudalaunch", "blocks_p50", "launches"}},
     .split = "kernel",
     .percentile = 0.50},

    {.name = "graph-launches",
     .text = "graph launches",
     .family = graph,
     .sources = {{"cudalaunch", "graph_launches"}, {"cudagraph", "launches"}, {"cudatop", "graph_launches"}}},
    {.name = "graph-kernels",
     .text = "kernels launched by graphs",
     .family = graph,
     .sources = {{"cudalaunch", "graph_kernels"}, {"cudagraph", "kernels_launched"}, {"cudatop", "graph_kernels"}}},
    {.name = "kernels-per-graph",
     .text = "kernels per graph launch",
     .kind = MeasureKind::ratio,
     .family = graph,
     .part = "graph-kernels",
     .whole = "graph-launches"},
    {.name = "captures",
     .text = "captures",
     .family = graph,
     .sources = {{"cudagraph", "captures"}, {"cudatop", "captures"}}},
    {.name = "instantiations",
     .text = "graph instantiations",
     .family = graph,
     .sources = {{"cudagraph", "instantiates"}, {"cudatop", "instantiates"}}},

    {.name = "copies", .text = "copies", .family = copy, .sources = {{"cudamemcpy", "copies"}}, .split = "kind"},
    {.name = "copy-bytes",
     .text = "bytes copied",
     .shape = bytes,
     .family = copy,
     .sources = {{"cudamemcpy", "bytes"}},
     .split = "kind"},
    {.name = "copy-size",
     .text = "bytes per copy",
     .kind = MeasureKind::ratio,
     .shape = bytes,
     .family = copy,
     .part = "copy-bytes",
     .whole = "copies"},
    {.name = "copies", .text = "copies", .family = copy, .sources = {{"cudamemcpy", "copies"}, {"cudatop", "copies"}}},
    {.name = "h2d-bytes",
     .text = "bytes copied H2D",
     .shape = bytes,
     .family = copy,
     .sources = {{"cudatop", "h2d_bytes"}}},
    {.name = "d2h-bytes",
     .text = "bytes copied D2H",
     .shape = bytes,
     .family = copy,
     .sources = {{"cudatop", "d2h_bytes"}}},
    {.name = "d2d-bytes",
     .text = "bytes copied D2D",
     .shape = bytes,
     .family = copy,
     .sources = {{"cudatop", "d2d_bytes"}}},
    {.name = "copy-time",
     .text = "time in copy calls",
     .kind = MeasureKind::time,
     .family = copy,
     .sources = {{"cudamemcpy", "latency_total_ns"}}},

    {.name = "waits", .text = "waits", .family = wait, .sources = {{"cudasync", "calls"}, {"cudatop", "waits"}}},
    {.name = "wait-time",
     .text = "time waiting for the GPU",
     .kind = MeasureKind::time,
     .family = wait,
     .sources = {{"cudasync", "total_ns"}, {"cudatop", "blocked_ns"}}},
    {.name = "wait-time",
     .text = "time waiting",
     .kind = MeasureKind::time,
     .family = wait,
     .sources = {{"cudasync", "total_ns"}},
     .split = "wait"},
    {.name = "polls",
     .text = "unsuccessful polls",
     .family = wait,
     .sources = {{"cudasync", "not_ready"}, {"cudatop", "polls"}}},

    {.name = "allocations",
     .text = "allocations",
     .family = memory,
     .sources = {{"gpualloc", "allocs"}, {"cudatop", "allocs"}}},
    {.name = "allocated-bytes",
     .text = "bytes allocated",
     .shape = bytes,
     .family = memory,
     .sources = {{"gpualloc", "allocated_bytes"}}},
    {.name = "held-bytes",
     .text = "bytes held",
     .kind = MeasureKind::level,
     .shape = bytes,
     .family = memory,
     .sources = {{"gpualloc", "live_bytes"}, {"cudatop", "live_bytes"}}},
    {.name = "allocation-failures",
     .text = "failed allocations",
     .family = memory,
     .sources = {{"gpualloc", "failures"}, {"cudatop", "allocation_failures"}}},

    {.name = "gpu-busy",
     .text = "GPU busy (NVML)",
     .kind = MeasureKind::level,
     .shape = Shape::percent,
     .family = device,
     .sources = {{"cudatop", "gpu_percent", "", "gpu"}}},
    {.name = "gpu-watts",
     .text = "GPU power (NVML), W",
     .kind = MeasureKind::level,
     .family = device,
     .sources = {{"cudatop", "gpu_watts", "", "gpu"}}},
};

} // namespace

std::span<const Measure> measures()
{
    return all;
}

size_t measure_number(std::string_view name)
{
    return static_cast<size_t>(std::ranges::find(all, name, &Measure::name) - std::begin(all));
}

} // namespace gpusnoop::cudadiff
