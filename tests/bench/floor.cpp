// SPDX-License-Identifier: Apache-2.0
// Attaches an empty BPF program until stdin is closed, to measure the kernel's part of a probe's cost.
//
//     floor entry|pair|session PID PATH OFFSET[,OFFSET]
//     floor perf PID PATH OFFSET
#include "attach/tier.hpp"
#include "base/fd.hpp"

#include <bpf/bpf.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace gpusnoop;

Fd checked(int fd, const char* what)
{
    if (fd < 0) {
        fprintf(stderr, "floor: %s: %s\n", what, strerror(fd == -1 ? errno : -fd));
        exit(1);
    }
    return Fd(fd);
}

// Loads the program "return 0". In a uprobe session, returning 0 at entry also requests the return probe.
Fd load_empty(int attach_type)
{
    const bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
    };
    LIBBPF_OPTS(bpf_prog_load_opts, options);
    options.expected_attach_type = static_cast<bpf_attach_type>(attach_type);
    return checked(bpf_prog_load(BPF_PROG_TYPE_KPROBE, "floor", "GPL", code, std::size(code), &options), "load");
}

struct Location {
    int pid;
    const char* path;
    std::vector<uint64_t> offsets;
};

Fd multi(const Fd& program, int attach_type, const Location& location, bool on_return)
{
    return checked(create_link({.program = program.get(),
                                .attach_type = attach_type,
                                .path = location.path,
                                .offsets = location.offsets.data(),
                                .count = static_cast<uint32_t>(location.offsets.size()),
                                .on_return = on_return,
                                .pid = location.pid}),
                   "attach");
}

Fd perf(const Fd& program, const Location& location)
{
    perf_event_attr attributes{};
    attributes.size = sizeof(attributes);
    std::ifstream("/sys/bus/event_source/devices/uprobe/type") >> attributes.type;
    attributes.config1 = reinterpret_cast<uint64_t>(location.path);
    attributes.config2 = location.offsets.front();
    Fd event = checked(static_cast<int>(syscall(SYS_perf_event_open, &attributes, location.pid, -1, -1, 0)), "open");
    checked(ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, program.get()) ? -1 : dup(event.get()), "attach");
    return event;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: floor entry|pair|session|perf PID PATH OFFSET[,OFFSET]\n");
        return 2;
    }
    const std::string_view kind = argv[1];
    Location location{atoi(argv[2]), argv[3], {}};
    std::istringstream offsets(argv[4]);
    for (std::string offset; std::getline(offsets, offset, ',');)
        location.offsets.push_back(strtoull(offset.c_str(), nullptr, 0));
    const int attach_type = kind == "session" ? uprobe_session_attach_type
                            : kind == "perf"  ? 0
                                              : uprobe_multi_attach_type;
    const Fd program = load_empty(attach_type);
    std::vector<Fd> links;
    if (kind == "perf") {
        links.push_back(perf(program, location));
    } else {
        if (kind == "pair")
            links.push_back(multi(program, attach_type, location, true));
        links.push_back(multi(program, attach_type, location, false));
    }
    puts("attached");
    fflush(stdout);
    for (char byte = 0; read(STDIN_FILENO, &byte, 1) > 0;)
        ;
    return 0;
}
