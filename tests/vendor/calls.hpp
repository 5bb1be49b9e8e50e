// SPDX-License-Identifier: Apache-2.0
// Calls of a CUDA library's launching functions, with arguments that differ between calls, so that a tracer's output
// can be matched. No handle is real: without a device, or before cuInit(), the libraries refuse each call.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

using Triple = std::array<uint32_t, 3>;

// Arguments of a launch. Defaults for functions without such a parameter: a grid of 1, stream 0.
struct Arguments {
    uint64_t handle; // kernel, graph or host function
    Triple grid{1, 1, 1};
    Triple block{};
    uint32_t smem = 0;
    uint64_t stream = 0;
};

struct Call {
    std::string function;           // the exported symbol
    std::string kind;               // what is launched: kernel, graph or host
    std::vector<Arguments> kernels; // one element, or one per device
    std::function<int()> make;
};

// Calls of all launching functions that the library exports, some of them with several streams.
std::vector<Call> calls_of(void* library);

// Calls every function that copies, sets or prefetches: the first one `count` times, the next one `count` + 1 times,
// ... Prints a JSON line for each.
void make_copies(void* library, unsigned count);

// Calls cuGetProcAddress() for these functions, with many CUDA versions and all flags. Prints one JSON line: the number
// of addresses returned ("given"), and functions for which an address is not that of an exported function ("foreign").
void print_addresses(void* library, const std::vector<std::string>& names);
