// SPDX-License-Identifier: Apache-2.0
// Label of a histogram, as text ("pid = 123, comm = python") and as JSON fields.
#pragma once

#include "rows/call_view.hpp"
#include "rows/histogram.hpp"
#include "rows/output.hpp"
#include "rows/table.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

struct Label {
    std::vector<std::pair<std::string_view, Cell>> fields;
    std::string title;

    // Ignores empty cells. The value must be a text or a number.
    void add(std::string_view name, const Cell& value);
    void add_who(const WhoView& view, const WhoKey& key, const WhoSeen& seen, Processes& processes);
    void add_stream(const CallView& view, uint64_t stream);
    void add_call(const CallView& view, const CallKey& key, const WhoSeen& seen, Processes& processes,
                  std::span<const Probe> probes);
};

// Prints a histogram for each group of calls that has values, or for every group if empty_too is set. add_own(label,
// key, group) adds the tool's own dimensions to the label. Context must be a CallContext.
template<class K, class G, class Context>
void print_call_histograms(Output& output, const std::map<K, G>& groups, Histogram G::*measured, std::string_view unit,
                           const Context& context, uint64_t wall_ns, auto add_own, bool empty_too = false)
{
    for (const auto& [key, group] : groups) {
        const Histogram& histogram = group.*measured;
        if (!histogram.total() && !empty_too)
            continue;
        Label label;
        label.fields.emplace_back("measure", context.settings.measure);
        label.add_call(context.settings.view, key, group.who, context.processes, context.probes);
        add_own(label, key, group);
        output.histogram(label.title, unit, histogram, label.fields, wall_ns);
    }
}

} // namespace gpusnoop
