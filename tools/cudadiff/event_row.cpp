// SPDX-License-Identifier: Apache-2.0
#include "tools/cudadiff/event_row.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop::cudadiff {
namespace {

using Values = std::vector<std::pair<std::string, Record::Value>>;

void count(Values& row, std::string_view key, double number = 1)
{
    row.emplace_back(key, number);
}

void count(Values& row, std::string_view key, std::optional<double> number)
{
    if (number)
        count(row, key, *number);
}

bool failed(const Record& event)
{
    return event.number("result_code").value_or(0) != 0;
}

void of_launch(Values& row, const Record& event)
{
    const std::string_view function = event.text("function");
    count(row, "latency_total_ns", event.number("latency_ns"));
    if (event.number("result_code"))
        count(row, "errors", failed(event));
    if (function.find("GraphLaunch") != function.npos)
        return count(row, "graph_launches");
    if (function.find("LaunchHostFunc") != function.npos)
        return count(row, "host_functions");
    count(row, "launches");
    for (const auto& [from, sizes] : {std::pair("grid", std::array{"blocks_p50", "blocks_p95"}),
                                      std::pair("block", std::array{"threads_p50", "threads_p95"})})
        for (const char* size : sizes)
            count(row, size, event.product(from));
}

void of_copy(Values& row, const Record& event)
{
    count(row, "latency_total_ns", event.number("latency_ns"));
    if (failed(event))
        return;
    count(row, "copies", event.number("copies").value_or(1));
    count(row, "bytes", event.number("bytes"));
}

void of_wait(Values& row, const Record& event)
{
    count(row, "calls");
    count(row, "total_ns", event.number("latency_ns"));
    count(row, "not_ready", event.number("not_ready"));
}

void of_memory(Values& row, const Record& event)
{
    if (event.text("operation") != "alloc")
        return;
    if (failed(event))
        return count(row, "failures");
    count(row, "allocs");
    count(row, "allocated_bytes", event.number("bytes"));
}

void of_graph(Values& row, const Record& event)
{
    const std::string_view call = event.text("call");
    if (call == "launch") {
        count(row, "launches");
        count(row, "kernels_launched", event.number("kernels"));
        if (!event.number("kernels"))
            count(row, "graph_launches_unknown");
    } else if (call == "instantiate") {
        count(row, "instantiates");
    } else if (call == "capture") {
        count(row, "captures");
    }
}

constexpr std::pair<std::string_view, void (*)(Values&, const Record&)> tools[] = {
    {"cudalaunch", of_launch}, {"cudamemcpy", of_copy}, {"cudasync", of_wait},
    {"gpualloc", of_memory},   {"cudagraph", of_graph},
};

} // namespace

std::optional<Record> row_of_event(std::string_view tool, const Record& event)
{
    const auto* const found =
        std::ranges::find(tools, tool, &std::pair<std::string_view, void (*)(Values&, const Record&)>::first);
    if (found == std::end(tools))
        return std::nullopt;
    Values row;
    for (const std::string_view key : {"comm", "pod", "namespace", "kernel", "kind", "wait"})
        if (const Record::Value* value = event.value(key))
            row.emplace_back(key, *value);
    if (event.number("captured").value_or(0) == 0) // captured calls are not executed
        found->second(row, event);
    return Record(std::move(row));
}

} // namespace gpusnoop::cudadiff
