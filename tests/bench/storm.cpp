// SPDX-License-Identifier: Apache-2.0
// What a switch takes where there is nothing else: on each CPU two threads yield to each other, which is millions of
// switches a second. Says nanoseconds of CPU per switch, and how many there were in a second.
//
//     storm SECONDS
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sched.h>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace {

// Of all threads that have not ended.
struct Sum {
    double cpu_ns;
    long switches;
};

Sum sum()
{
    timespec cpu{};
    rusage usage{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    getrusage(RUSAGE_SELF, &usage);
    return {static_cast<double>(cpu.tv_sec) * 1e9 + static_cast<double>(cpu.tv_nsec), usage.ru_nvcsw + usage.ru_nivcsw};
}

void yield_on(int cpu, const std::atomic<bool>& ends)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    while (!ends)
        sched_yield();
}

} // namespace

int main(int argc, char** argv)
{
    const std::chrono::duration<double> time(argc == 2 ? atof(argv[1]) : 0);
    if (time.count() <= 0) {
        fprintf(stderr, "usage: storm SECONDS\n");
        return 2;
    }
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    std::atomic<bool> ends = false;
    std::vector<std::thread> threads;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        for (int i = 0; i < 2 && CPU_ISSET(cpu, &allowed); i++)
            threads.emplace_back(yield_on, cpu, std::cref(ends));
    std::this_thread::sleep_for(time / 10);
    const Sum before = sum();
    std::this_thread::sleep_for(time);
    const Sum after = sum();
    ends = true;
    for (std::thread& thread : threads)
        thread.join();
    const auto switches = static_cast<double>(after.switches - before.switches);
    printf("%.2f %.0f\n", (after.cpu_ns - before.cpu_ns) / switches, switches / time.count());
    return 0;
}
