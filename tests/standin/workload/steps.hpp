// SPDX-License-Identifier: Apache-2.0
// Functions that run the steps of scripts. To add a step, add a function, and a row in steps.cpp.
#pragma once

#include "script.hpp"

namespace workload {

const Shape* find_step(const std::string& name);
void run(const Steps&);

// launch.cpp
void launch(const Step&);
void host_function(const Step&);
void look_up_again(const Step&);
void reload_modules(const Step&);

// graph.cpp, capture.cpp
void capture(const Step&);
void event_step(const Step&);
void stream_step(const Step&);
void build_graph(const Step&);
void graph_step(const Step&);

// alloc.cpp, free.cpp
void alloc(const Step&);
void free_memory(const Step&);
void free_address(const Step&);
void free_null(const Step&);
void trim(const Step&);
void reset_device(const Step&);
void new_context(const Step&);
void destroy_context(const Step&);
void primary_context(const Step&);

// mapping.cpp
void reserve_addresses(const Step&);
void map_memory(const Step&);
void retain(const Step&);
void unmap_memory(const Step&);
void unreserve_addresses(const Step&);

// churn.cpp
void churn(const Step&);

// copy.cpp, sync.cpp
void copy(const Step&);
void synchronize(const Step&);

// control.cpp
void threads(const Step&);
void background(const Step&);
void join(const Step&);
void exit_main(const Step&);
void repeat(const Step&);
void loop(const Step&);
void forever(const Step&);
void fork_child(const Step&);
void exec_image(const Step&);
void deeper(const Step&);
void leave(const Step&);
void interrupt(const Step&);
void sleep_ms(const Step&);
void wait_for(const Step&);
void touch(const Step&);
void name_thread(const Step&);
void open_library(const Step&);
void set_device(const Step&);

} // namespace workload
