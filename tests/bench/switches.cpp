// SPDX-License-Identifier: Apache-2.0
// Duration of a context switch: two threads on one CPU pass a byte back and forth through pipes.
// Prints nanoseconds per switch: the 10th percentile over batches.
//
//     switches SECONDS [LIBCUDA]
//
// With a library, it prints "ready", reads a character from stdin, and then both threads launch a kernel before the
// first switch.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::duration<double, std::nano>;
using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                       void**);

constexpr unsigned batch_round_trips = 500;

bool pass_byte(int from, int to)
{
    char byte = 0;
    return read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1;
}

double batch(int from, int to)
{
    const auto begin = Clock::now();
    for (unsigned i = 0; i < batch_round_trips; i++)
        pass_byte(from, to);
    return Nanoseconds(Clock::now() - begin).count() / batch_round_trips / 2;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: switches SECONDS [LIBCUDA]\n");
        return 2;
    }
    Launch launch = nullptr;
    if (argc == 3) {
        void* library = dlopen(argv[2], RTLD_NOW);
        launch = library ? reinterpret_cast<Launch>(dlsym(library, "cuLaunchKernel")) : nullptr;
        if (!launch) {
            fprintf(stderr, "switches: %s: no cuLaunchKernel\n", argv[2]);
            return 1;
        }
        puts("ready");
        fflush(stdout);
        if (getchar() == EOF)
            return 1;
    }
    const auto call = [launch] {
        if (launch)
            launch(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    };
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0, &cpus);
    sched_setaffinity(0, sizeof(cpus), &cpus);
    setpriority(PRIO_PROCESS, 0, -20);
    std::array<int, 2> to_other{}, from_other{};
    if (pipe(to_other.data()) || pipe(from_other.data()))
        return 1;
    std::thread other([&] {
        call();
        while (pass_byte(to_other[0], from_other[1]))
            ;
    });
    call();
    const char byte = 0;
    std::vector<double> samples;
    if (write(to_other[1], &byte, 1) == 1)
        for (const auto end = Clock::now() + std::chrono::duration<double>(atof(argv[1])); Clock::now() < end;)
            samples.push_back(batch(from_other[0], to_other[1]));
    close(to_other[1]); // ends the other thread's loop
    other.join();
    if (samples.empty())
        return 2;
    const auto percentile_10 = samples.begin() + static_cast<ptrdiff_t>(samples.size() / 10);
    std::ranges::nth_element(samples, percentile_10);
    printf("%.2f\n", *percentile_10);
    return 0;
}
