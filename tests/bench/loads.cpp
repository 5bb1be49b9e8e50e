// SPDX-License-Identifier: Apache-2.0
// Programs whose system calls, context switches or stacks a tracer makes more expensive. They print nanoseconds.
//
//     loads syscalls SECONDS               getppid
//     loads syscalls SECONDS MAJOR MINOR   ioctl on a device node with these numbers. The node is opened with O_PATH,
//     so
//                                          it needs no driver: the ioctl enters the kernel with a file of the right
//                                          device, and fails there
//     loads switches SECONDS [LIBCUDA]     switch between two threads on one CPU, which pass a byte back and forth
//                                          through pipes. With a library, prints "ready", reads a line from stdin, and
//                                          then both threads launch a kernel before the first switch
//     loads storm SECONDS                  CPU time of a switch. On each CPU two threads yield to each other, millions
//                                          of times a second
//     loads stacks LIBCUDA                 prints "ready". For each line of stdin it launches once from each of 2048
//                                          stacks of about 20 frames, and prints the mean time of a launch, including
//                                          the calls that lead to it
//
// Calls are timed in batches: "syscalls" prints the median batch, "switches" the 10th percentile.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::duration<double, std::nano>;
using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                       void**);
Launch launch_kernel = nullptr;

int launch(uintptr_t function)
{
    return launch_kernel(reinterpret_cast<void*>(function), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
}

void open_driver(const char* path)
{
    void* const library = dlopen(path, RTLD_NOW);
    launch_kernel = library ? reinterpret_cast<Launch>(dlsym(library, "cuLaunchKernel")) : nullptr;
    if (!launch_kernel) {
        fprintf(stderr, "loads: %s: no cuLaunchKernel\n", path);
        exit(1);
    }
    std::cout << "ready" << std::endl;
}

void run_on(int cpu)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    sched_setaffinity(0, sizeof(cpus), &cpus);
}

void have_a_cpu()
{
    run_on(sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0);
    setpriority(PRIO_PROCESS, 0, -20);
}

// Runs batches for this time, each of which returns its mean time of a call. Prints this percentile.
template<class Batch>
int print_percentile(std::chrono::duration<double> time, size_t percent, Batch batch)
{
    std::vector<double> samples;
    for (const auto end = Clock::now() + time; Clock::now() < end;)
        samples.push_back(batch());
    if (samples.empty())
        return 2;
    const auto at = samples.begin() + static_cast<ptrdiff_t>(samples.size() * percent / 100);
    std::ranges::nth_element(samples, at);
    printf("%.2f\n", *at);
    return 0;
}

template<class Call>
double mean_ns(unsigned calls, Call call)
{
    const auto begin = Clock::now();
    for (unsigned i = 0; i < calls; i++)
        call();
    return Nanoseconds(Clock::now() - begin).count() / calls;
}

int open_node(unsigned major_number, unsigned minor_number)
{
    const std::string path = std::filesystem::temp_directory_path() / ("syscalls-" + std::to_string(getpid()));
    const bool made = mknod(path.c_str(), S_IFCHR | 0600, makedev(major_number, minor_number)) == 0;
    const int node = made ? open(path.c_str(), O_PATH | O_CLOEXEC) : -1;
    if (node < 0) {
        perror("loads: cannot create and open a device node");
        exit(1);
    }
    unlink(path.c_str());
    return node;
}

int measure_syscalls(std::chrono::duration<double> time, int node)
{
    constexpr unsigned batch_calls = 1000; // takes much longer than reading the clock, and much less than a time slice
    constexpr unsigned control = 0xc020462a; // NV_ESC_RM_CONTROL
    have_a_cpu();
    return print_percentile(time, 50, [node] {
        uint32_t control_struct[8] = {};
        return mean_ns(batch_calls,
                       [&] { node < 0 ? syscall(SYS_getppid) : syscall(SYS_ioctl, node, control, control_struct); });
    });
}

bool pass_byte(int from, int to)
{
    char byte = 0;
    return read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1;
}

int measure_switches(std::chrono::duration<double> time)
{
    constexpr unsigned batch_round_trips = 500;
    have_a_cpu();
    std::array<int, 2> to_other{}, from_other{};
    if (pipe(to_other.data()) || pipe(from_other.data()))
        return 1;
    std::thread other([&] {
        if (launch_kernel)
            launch(0);
        while (pass_byte(to_other[0], from_other[1]))
            ;
    });
    if (launch_kernel)
        launch(0);
    const char byte = 0;
    const bool began = write(to_other[1], &byte, 1) == 1;
    const int status = !began ? 1 : print_percentile(time, 10, [&] {
        return mean_ns(batch_round_trips, [&] { pass_byte(from_other[0], to_other[1]); }) / 2;
    });
    close(to_other[1]); // ends the other thread's loop
    other.join();
    return status;
}

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

int measure_storm(std::chrono::duration<double> time)
{
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        for (int i = 0; i < 2 && CPU_ISSET(cpu, &allowed); i++)
            threads.emplace_back([cpu, &stop] {
                run_on(cpu);
                while (!stop)
                    sched_yield();
            });
    std::this_thread::sleep_for(time / 10);
    const Usage before = total_usage();
    std::this_thread::sleep_for(time);
    const Usage after = total_usage();
    stop = true;
    for (std::thread& thread : threads)
        thread.join();
    printf("%.2f\n", (after.cpu_ns - before.cpu_ns) / static_cast<double>(after.switches - before.switches));
    return 0;
}

constexpr unsigned path_bits = 11, frames = 20;

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
        return launch(16);
    return path & 1 ? frame<1>(path, depth) : frame<2>(path, depth);
}

int measure_stacks()
{
    int sum = 0;
    for (std::string line; std::getline(std::cin, line);) {
        unsigned path = 0;
        std::cout << mean_ns(1U << path_bits, [&] { sum += call_frames(path++, frames); }) << std::endl;
    }
    return sum == 42;
}

} // namespace

int main(int argc, char** argv)
{
    const std::string what = argc > 2 ? argv[1] : "";
    const std::chrono::duration<double> time(argc > 2 ? atof(argv[2]) : 0);
    if (what == "syscalls" && (argc == 3 || argc == 5))
        return measure_syscalls(time, argc == 3 ? -1 : open_node(atoi(argv[3]), atoi(argv[4])));
    if (what == "storm" && argc == 3 && time.count() > 0)
        return measure_storm(time);
    if (what == "switches" && (argc == 3 || argc == 4)) {
        if (argc == 4)
            open_driver(argv[3]);
        return argc == 4 && getchar() == EOF ? 1 : measure_switches(time);
    }
    if (what == "stacks" && argc == 3) {
        open_driver(argv[2]);
        return measure_stacks();
    }
    fprintf(stderr, "usage: loads syscalls|switches|storm SECONDS ..., or loads stacks LIBCUDA\n");
    return 2;
}
