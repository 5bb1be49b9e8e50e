// SPDX-License-Identifier: Apache-2.0
// Functions that run the steps of scripts. To add a step, add a function, and a row in steps.cpp.
#pragma once

#include "script.hpp"

namespace workload {

std::span<const StepRow> steps();

using Run = void(const Step&);
Run launch, host_function, look_up_again;                                                   // launch.cpp
Run capture, event_step, stream_step;                                                       // capture.cpp
Run build_graph, graph_step;                                                                // graph.cpp
Run alloc, reset_device, new_context, destroy_context, primary_context;                     // alloc.cpp
Run free_memory, free_address, free_null, trim;                                             // free.cpp
Run reserve_addresses, map_memory, retain, unmap_memory, unreserve_addresses;               // mapping.cpp
Run churn, copy, synchronize;                                                               // churn.cpp etc.
Run threads, background, join, exit_main, fork_child, exec_image, deeper, leave, interrupt; // control.cpp

} // namespace workload
