// SPDX-License-Identifier: Apache-2.0
#include "run/surroundings.hpp"

#include "base/descriptors.hpp"
#include "base/error.hpp"

#include <bit>
#include <bpf/libbpf.h>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

void need(size_t descriptors)
{
    const size_t limit = descriptor_limit();
    if (descriptors > limit)
        throw Error(fmt::format("this process may have {} open files, and needs at least {}", limit, descriptors),
                    fmt::format("raise the limit: ulimit -n {}, or LimitNOFILE= of a systemd service",
                                2 * std::bit_ceil(descriptors)));
}

} // namespace

// O_PATH: reading and writing fail with EBADF, as if there were nothing.
void hold_closed_streams()
{
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/", O_PATH); // takes the lowest that is free: this one
}

void raise_descriptor_limit()
{
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    constexpr size_t least = 32; // the start alone: /proc, BTF, the kernel asked what it can do
    need(least);
}

// By the object, and not by what is open: libbpf may have opened some of it (1.4), or not.
void check_descriptors(const bpf_object* object, size_t processes)
{
    // Streams, timers, signals, helpers' sockets, file watches and libbpf's links: 27 once the first file is attached.
    // Besides, Attacher keeps 16 free.
    constexpr size_t others = 44;
    size_t needed = others + processes + static_cast<size_t>(libbpf_num_possible_cpus()); // MappingWatch
    const bpf_map* map = nullptr;
    bpf_object__for_each_map (map, object)
        needed++;
    bpf_program* program = nullptr;
    bpf_object__for_each_program (program, object)
        needed += bpf_program__autoload(program);
    need(needed);
}

} // namespace gpusnoop
