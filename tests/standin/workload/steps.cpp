// SPDX-License-Identifier: Apache-2.0
#include "steps.hpp"

#include "session.hpp"
#include "symbols.hpp"

namespace workload {
namespace {

#define PACE "result runtime_result delay_us block_us gap_us"

const StepRow rows[] = {
    {"launch", launch, "fn handle grid block smem stream devices " PACE},
    {"hostfunc", host_function, "fn stream " PACE},
    {"lookup", look_up_again},
    {"reload", [](const Step&) { reload(); }},
    {"capture", capture, "fn stream to " PACE},
    {"event", event_step, "fn stream " PACE},
    {"stream", stream_step, "fn stream " PACE},
    {"build", build_graph, "grid"},
    {"graph", graph_step, "fn stream of kernel body update_result " PACE},
    {"alloc", alloc, "fn stream width height depth format channels levels location from pool params tag " PACE},
    {"free", free_memory, "fn stream " PACE},
    {"badfree", free_address, "fn stream " PACE},
    {"freenull", free_null, "fn stream " PACE},
    {"trim", trim, "fn"},
    {"reserve", reserve_addresses, PACE},
    {"map", map_memory, "handle at bytes " PACE},
    {"retain", retain, "at " PACE},
    {"unmap", unmap_memory, "at bytes " PACE},
    {"unreserve", unreserve_addresses, PACE},
    {"churn", churn, "held fail fn"},
    {"reset", reset_device},
    {"newcontext", new_context},
    {"destroycontext", destroy_context},
    {"primary", primary_context},
    {"copy", copy, "fn bytes width height depth dst src kind sizes stream " PACE},
    {"sync", synchronize, "fn stream event " PACE},
    {"threads", threads, "", with_block},
    {"background", background, "", with_block},
    {"join", join},
    {"exitmain", exit_main},
    {"fork", fork_child, "", with_block},
    {"exec", exec_image, "", with_block},
    {"deeper", deeper, "", with_block},
    {"leave", leave, "", with_block},
    {"interrupt", interrupt, "", with_block},
    {"dlopen", [](const Step& step) { open_driver(step.word(0, "libcuda.so.1")); }},
    {"device", [](const Step& step) { use_device(static_cast<int>(step.number(0))); }},
};

} // namespace

std::span<const StepRow> steps()
{
    return rows;
}

} // namespace workload
