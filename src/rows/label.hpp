// SPDX-License-Identifier: Apache-2.0
// What a histogram belongs to: "pid = 123, comm = python", and the same as JSON fields.
#pragma once

#include "rows/call_view.hpp"
#include "rows/table.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

struct Label {
    std::vector<std::pair<std::string_view, Cell>> fields;
    std::string title;

    // Text and numbers; an empty cell adds nothing.
    void add(std::string_view name, const Cell& value);
    void add_who(const WhoView& view, const WhoKey& key, const WhoSeen& seen, Processes& processes);
    void add_stream(const CallView& view, uint64_t stream);
    void add_call(const CallView& view, const CallKey& key, const WhoSeen& seen, Processes& processes,
                  std::span<const Probe> probes);
};

} // namespace gpusnoop
