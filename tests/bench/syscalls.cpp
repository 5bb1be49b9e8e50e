// SPDX-License-Identifier: Apache-2.0
// Duration of a system call: repeats it for SECONDS and prints nanoseconds per call, the median over batches.
//
//     syscalls SECONDS                   getppid
//     syscalls SECONDS MAJOR MINOR       ioctl on a device node with these numbers
//
// The node is opened with O_PATH, so it needs no driver. The ioctl enters the kernel with a file of the right device,
// and fails there.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::duration<double, std::nano>;

constexpr unsigned batch_calls = 1000;   // takes much longer than reading the clock, and much less than a time slice
constexpr unsigned control = 0xc020462a; // NV_ESC_RM_CONTROL

int open_node(unsigned major_number, unsigned minor_number)
{
    const std::string path = std::filesystem::temp_directory_path() / ("syscalls-" + std::to_string(getpid()));
    if (mknod(path.c_str(), S_IFCHR | 0600, makedev(major_number, minor_number)))
        return -1;
    const int node = open(path.c_str(), O_PATH | O_CLOEXEC);
    unlink(path.c_str());
    return node;
}

double batch(int node)
{
    uint32_t control_struct[8] = {};
    const auto begin = Clock::now();
    for (unsigned i = 0; i < batch_calls; i++)
        node < 0 ? syscall(SYS_getppid) : syscall(SYS_ioctl, node, control, control_struct);
    return Nanoseconds(Clock::now() - begin).count() / batch_calls;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 2 && argc != 4) {
        fprintf(stderr, "usage: syscalls SECONDS [MAJOR MINOR]\n");
        return 2;
    }
    auto number = [argv](int i) { return static_cast<unsigned>(atoi(argv[i])); };
    const int node = argc == 4 ? open_node(number(2), number(3)) : -1;
    if (argc == 4 && node < 0) {
        perror("syscalls: cannot create and open a device node");
        return 1;
    }
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0, &cpus);
    sched_setaffinity(0, sizeof(cpus), &cpus);
    setpriority(PRIO_PROCESS, 0, -20);
    std::vector<double> samples;
    for (const auto end = Clock::now() + std::chrono::duration<double>(atof(argv[1])); Clock::now() < end;)
        samples.push_back(batch(node));
    if (samples.empty())
        return 2;
    const auto median = samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2);
    std::ranges::nth_element(samples, median);
    printf("%.2f\n", *median);
    return 0;
}
