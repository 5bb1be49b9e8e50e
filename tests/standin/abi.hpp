// SPDX-License-Identifier: Apache-2.0
// CUDA structures passed by pointer, and result codes, shared by the stand-in libraries and the workload. Offsets are
// those of the public CUDA headers; this file asserts every offset that a tracer reads. Libraries and workload treat
// handles as plain pointers.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace standin {

enum : int {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    not_initialized = 3,
    insufficient_driver = 35, // runtime only
    invalid_device_function = 98,
    invalid_device = 101,
    invalid_context = 201,
    invalid_handle = 400,
    illegal_state = 401,
    not_found = 500,
    already_registered = 712,
    not_registered = 713,
    capture_unsupported = 900,
    capture_invalidated = 901,
    capture_merge = 902,
    capture_unmatched = 903,
    capture_unjoined = 904,
    capture_isolation = 905,
    capture_implicit = 906,
    captured_event = 907,
    capture_wrong_thread = 908,
    graph_update_failure = 910,
};

struct Dim3 {
    unsigned x = 1, y = 1, z = 1;
    bool operator==(const Dim3&) const = default;
    auto operator<=>(const Dim3&) const = default;
};

struct LaunchConfig { // shared memory is 32 bits wide in CUlaunchConfig, 64 in cudaLaunchConfig_t
    Dim3 grid, block;
    size_t shared;
    void* stream;
    void* attributes;
    unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56 && offsetof(LaunchConfig, shared) == 24 &&
              offsetof(LaunchConfig, stream) == 32);

struct DriverLaunchParams { // CUDA_LAUNCH_PARAMS
    void* function;
    Dim3 grid, block;
    unsigned shared;
    void* stream;
    void** arguments;
};
static_assert(sizeof(DriverLaunchParams) == 56 && offsetof(DriverLaunchParams, stream) == 40);

struct RuntimeLaunchParams { // cudaLaunchParams, up to CUDA 12
    const void* function;
    Dim3 grid, block;
    void** arguments;
    size_t shared;
    void* stream;
};
static_assert(sizeof(RuntimeLaunchParams) == 56 && offsetof(RuntimeLaunchParams, shared) == 40);

struct KernelNodeParams { // CUDA_KERNEL_NODE_PARAMS; version 1 ends after `extra`
    void* function;
    Dim3 grid, block;
    unsigned shared;
    void** arguments;
    void** extra;
    void* kernel;
    void* context;
};
static_assert(sizeof(KernelNodeParams) == 72 && offsetof(KernelNodeParams, extra) == 48);

struct HostNodeParams {
    void (*function)(void*);
    void* argument;
};

struct InstantiateParams { // CUDA_GRAPH_INSTANTIATE_PARAMS
    uint64_t flags;
    void* upload_stream;
    void* error_node;
    unsigned result;
};
static_assert(sizeof(InstantiateParams) == 32 && offsetof(InstantiateParams, result) == 24);

struct UpdateResult { // CUgraphExecUpdateResultInfo
    unsigned result;
    void* error_node;
    void* error_from_node;
};
static_assert(sizeof(UpdateResult) == 24 && offsetof(UpdateResult, error_node) == 8);

using HostFunction = void (*)(void* argument);
using StreamCallback = void (*)(void* stream, int status, void* argument);

// Indexes of standin_counts(), which counts every call that reached the implementation, successful or not. A launch
// during a capture counts both as `launch` and as `recorded`. A `graph_call` creates, changes or destroys a graph, or
// begins or ends a capture.
enum class Class { launch, recorded, graph_launch, host, alloc, free, copy, sync, graph_call, count_ };

} // namespace standin
