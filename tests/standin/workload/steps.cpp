// SPDX-License-Identifier: Apache-2.0
#include "steps.hpp"

#include "session.hpp"

namespace workload {
namespace {

struct Row {
    std::string_view name;
    Shape shape;
    void (*run)(const Step&);
};

#define PACE "result runtime_result delay_us block_us gap_us"

const Row rows[] = {
    {"launch", {false, "fn handle grid block smem stream devices " PACE}, launch},
    {"hostfunc", {false, "fn stream " PACE}, host_function},
    {"lookup", {false, ""}, look_up_again},
    {"reload", {false, ""}, reload_modules},
    {"capture", {false, "fn stream mode to instantiate " PACE}, capture},
    {"event", {false, "fn stream " PACE}, event_step},
    {"stream", {false, "fn stream " PACE}, stream_step},
    {"build", {false, "instantiate grid block smem"}, build_graph},
    {"graph",
     {false, "fn stream flags of kernel grid block smem bytes event body node update_result " PACE},
     graph_step},
    {"alloc",
     {false, "fn stream width height depth format channels levels location from pool params tag " PACE},
     alloc},
    {"free", {false, "fn stream " PACE}, free_memory},
    {"badfree", {false, "fn stream " PACE}, free_address},
    {"freenull", {false, "fn stream " PACE}, free_null},
    {"trim", {false, "fn"}, trim},
    {"reserve", {false, PACE}, reserve_addresses},
    {"map", {false, "handle at bytes " PACE}, map_memory},
    {"retain", {false, "at " PACE}, retain},
    {"unmap", {false, "at bytes " PACE}, unmap_memory},
    {"unreserve", {false, PACE}, unreserve_addresses},
    {"churn", {false, "held sizes fail seed fn stream"}, churn},
    {"reset", {false, ""}, reset_device},
    {"newcontext", {false, ""}, new_context},
    {"destroycontext", {false, ""}, destroy_context},
    {"primary", {false, ""}, primary_context},
    {"copy", {false, "fn bytes width height depth dst src kind types sizes location params stream " PACE}, copy},
    {"sync", {false, "fn stream event flags " PACE}, synchronize},
    {"threads", {true, ""}, threads},
    {"background", {true, ""}, background},
    {"join", {false, ""}, join},
    {"exitmain", {false, ""}, exit_main},
    {"repeat", {true, ""}, repeat},
    {"loop", {true, ""}, loop},
    {"forever", {true, ""}, forever},
    {"fork", {true, ""}, fork_child},
    {"exec", {true, ""}, exec_image},
    {"deeper", {true, ""}, deeper},
    {"leave", {true, ""}, leave},
    {"interrupt", {true, ""}, interrupt},
    {"sleep", {false, ""}, sleep_ms},
    {"wait", {false, ""}, wait_for},
    {"touch", {false, ""}, touch},
    {"name", {false, ""}, name_thread},
    {"dlopen", {false, ""}, open_library},
    {"device", {false, ""}, set_device},
};

const Row* find_row(const std::string& name)
{
    for (const Row& row : rows)
        if (row.name == name)
            return &row;
    return nullptr;
}

} // namespace

const Shape* find_step(const std::string& name)
{
    const Row* row = find_row(name);
    return row ? &row->shape : nullptr;
}

void run(const Steps& steps)
{
    for (const Step& step : steps) {
        if (stopping())
            return;
        find_row(step.name)->run(step);
    }
}

} // namespace workload
