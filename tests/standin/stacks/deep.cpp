// SPDX-License-Identifier: Apache-2.0
// deep DRIVER GO FRAMES BYTES: makes 100 launches inside FRAMES nested calls of down(), each of which uses BYTES of
// stack.
#include "launch.hpp"

#include <alloca.h>
#include <cstdlib>

static stacks::Launch launch;

extern "C" [[gnu::noinline]] int leaf()
{
    return launch(reinterpret_cast<void*>(16), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) + 1;
}

extern "C" [[gnu::noinline]] int down(int frames, int bytes)
{
    const auto buffer = static_cast<volatile char*>(alloca(static_cast<size_t>(bytes)));
    buffer[0] = 1;
    return (frames > 1 ? down(frames - 1, bytes) : leaf()) + buffer[0];
}

int main(int, char** argv)
{
    launch = stacks::launch_of(argv[1]);
    stacks::wait_for(argv[2]);
    int sum = 0;
    for (int i = 0; i < 100; i++)
        sum += down(atoi(argv[3]), atoi(argv[4]));
    stacks::stay();
    return sum;
}
