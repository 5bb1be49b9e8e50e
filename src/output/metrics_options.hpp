// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpusnoop {

// Where the metrics of a run go.
struct MetricsOptions {
    std::string textfile; // empty: none
    std::string listen;   // where they can be asked for; empty: nowhere

    bool wanted() const { return !textfile.empty() || !listen.empty(); } // in place of tables
};

} // namespace gpusnoop
