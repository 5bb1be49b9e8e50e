// SPDX-License-Identifier: Apache-2.0
// Storm of context switches: on each CPU two threads yield to each other, millions of times a second.
// Prints the CPU time of a switch in ns, and the switches per second.
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

// Totals of all running threads.
struct Usage {
    double cpu_ns;
    long switches;
};

Usage total_usage()
{
    timespec cpu{};
    rusage usage{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    getrusage(RUSAGE_SELF, &usage);
    return {static_cast<double>(cpu.tv_sec) * 1e9 + static_cast<double>(cpu.tv_nsec), usage.ru_nvcsw + usage.ru_nivcsw};
}

void yield_on(int cpu, const std::atomic<bool>& stop)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    while (!stop)
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
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        for (int i = 0; i < 2 && CPU_ISSET(cpu, &allowed); i++)
            threads.emplace_back(yield_on, cpu, std::cref(stop));
    std::this_thread::sleep_for(time / 10);
    const Usage before = total_usage();
    std::this_thread::sleep_for(time);
    const Usage after = total_usage();
    stop = true;
    for (std::thread& thread : threads)
        thread.join();
    const auto switches = static_cast<double>(after.switches - before.switches);
    printf("%.2f %.0f\n", (after.cpu_ns - before.cpu_ns) / switches, switches / time.count());
    return 0;
}
