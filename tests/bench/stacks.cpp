// SPDX-License-Identifier: Apache-2.0
// Program that launches kernels from 2048 different stacks of about 20 frames, with frame pointers.
//
//     stacks LIBRARY
//
// Prints "ready". For each line of stdin it launches once from each stack, and prints the mean time of a launch in ns,
// including the calls that lead to it.
#include <chrono>
#include <cstdio>
#include <dlfcn.h>
#include <iostream>
#include <string>

namespace {

constexpr unsigned path_bits = 11, frames = 20;

using LaunchKernel = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                             void**);
LaunchKernel launch = nullptr;

int call_frames(unsigned path, unsigned depth);

template<int variant>
__attribute__((noinline)) int frame(unsigned path, unsigned depth)
{
    int sum = call_frames(path >> 1, depth - 1);
    asm volatile("" : "+r"(sum)); // prevents a tail call or a loop
    return sum + variant;
}

int call_frames(unsigned path, unsigned depth)
{
    if (depth == 0)
        return launch(reinterpret_cast<void*>(16), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    return path & 1 ? frame<1>(path, depth) : frame<2>(path, depth);
}

} // namespace

int main(int argc, char** argv)
{
    void* const library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : nullptr;
    launch = library ? reinterpret_cast<LaunchKernel>(dlsym(library, "cuLaunchKernel")) : nullptr;
    if (!launch)
        return 2;
    std::cout << "ready\n" << std::flush;
    int sum = 0;
    for (std::string line; std::getline(std::cin, line);) {
        using Clock = std::chrono::steady_clock;
        const auto began = Clock::now();
        for (unsigned path = 0; path < 1U << path_bits; path++)
            sum += call_frames(path, frames);
        const std::chrono::duration<double, std::nano> took = Clock::now() - began;
        std::cout << took.count() / (1U << path_bits) << '\n' << std::flush;
    }
    return sum == 42;
}
