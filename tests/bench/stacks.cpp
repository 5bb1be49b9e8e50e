// SPDX-License-Identifier: Apache-2.0
// A process that launches from 2048 stacks of about 20 frames each, with frame pointers:
//
//     stacks LIBRARY
//
// It says "ready", and for each line of stdin, in ns, what a launch took on average, with the calls that led to it.
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

int called(unsigned path, unsigned more);

template<int which>
__attribute__((noinline)) int frame(unsigned path, unsigned more)
{
    int sum = called(path >> 1, more - 1);
    asm volatile("" : "+r"(sum)); // no tail call, and no loop
    return sum + which;
}

int called(unsigned path, unsigned more)
{
    if (more == 0)
        return launch(reinterpret_cast<void*>(16), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    return path & 1 ? frame<1>(path, more) : frame<2>(path, more);
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
            sum += called(path, frames);
        const std::chrono::duration<double, std::nano> took = Clock::now() - began;
        std::cout << took.count() / (1U << path_bits) << '\n' << std::flush;
    }
    return sum == 42;
}
