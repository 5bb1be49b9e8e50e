// SPDX-License-Identifier: Apache-2.0
// Calls of the launching functions of a CUDA library, with arguments that tell them apart for a tracer. No handle in
// them is real: the libraries refuse a call before they look at it where there is no device or cuInit() was not called.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

using Triple = std::array<uint32_t, 3>;

// What a launch is made with. Where a function takes no such thing, what it then means: a grid of 1, stream 0.
struct Arguments {
    uint64_t handle; // kernel, graph or host function
    Triple grid{1, 1, 1};
    Triple block{};
    uint32_t smem = 0;
    uint64_t stream = 0;
};

struct Call {
    std::string function;           // the exported symbol
    std::string kind;               // kernel, graph, host
    std::vector<Arguments> kernels; // one; a launch on several devices has one for each
    std::function<int()> make;
};

// Every function of these that the library exports, some of them with several streams.
std::vector<Call> calls_of(void* library);

// Makes calls of every function that copies, sets or prefetches: the first COUNT times, the next one once more, ... and
// prints a JSON line for each.
void make_copies(void* library, unsigned count);

// Asks the driver for these functions, as of many versions of CUDA and with all flags, and prints one JSON line: how
// often it gave an address, and which of these are no exported function's.
void print_addresses(void* library, const std::vector<std::string>& names);
