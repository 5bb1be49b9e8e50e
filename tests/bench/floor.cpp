// SPDX-License-Identifier: Apache-2.0
// Attaches an empty BPF program, or one of blocks.bpf.c, until stdin is closed. An empty program shows the kernel's
// part of a probe's cost.
//
//     floor entry|pair|session PID PATH OFFSET[,OFFSET]
//     floor perf PID PATH OFFSET
//     floor OBJECT:NAME PID PATH OFFSET
#include "attach/tier.hpp"
#include "base/fd.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
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
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace gpusnoop;

[[noreturn]] void fail(const char* what, int error = errno)
{
    fprintf(stderr, "floor: %s: %s\n", what, strerror(error));
    exit(1);
}

Fd checked(int fd, const char* what)
{
    if (fd < 0)
        fail(what, fd == -1 ? errno : -fd);
    return Fd(fd);
}

struct Location {
    int pid;
    const char* path;
    std::vector<uint64_t> offsets;
};

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

std::vector<Fd> attach_empty(const std::string& kind, const Location& location)
{
    const int attach_type = kind == "session" ? uprobe_session_attach_type
                            : kind == "perf"  ? 0
                                              : uprobe_multi_attach_type;
    const Fd program = load_empty(attach_type);
    std::vector<Fd> links;
    if (kind == "pair")
        links.push_back(multi(program, attach_type, location, true));
    links.push_back(kind == "perf" ? perf(program, location) : multi(program, attach_type, location, false));
    return links;
}

// Loads one program of the object, which stays loaded until this process exits.
std::vector<Fd> attach_block(const std::string& file, const std::string& name, const Location& location)
{
    bpf_object* const object = bpf_object__open(file.c_str());
    if (!object)
        fail(file.c_str());
    bpf_program* wanted = nullptr;
    bpf_program* program = nullptr;
    bpf_object__for_each_program (program, object) {
        bpf_program__set_autoload(program, bpf_program__name(program) == name);
        if (bpf_program__name(program) == name)
            wanted = program;
    }
    bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "lines"),
                             2); // entry 0: the reader's position; entry 1: a line
    if (!wanted || bpf_object__load(object))
        fail(name.c_str());
    // Without a reader the ring buffer would fill up. Reserving space in a full buffer fails immediately, and is
    // cheaper than a normal reservation.
    ring_buffer* const ring = ring_buffer__new(
        bpf_object__find_map_fd_by_name(object, "ring"), [](void*, void*, size_t) { return 0; }, nullptr, nullptr);
    if (!ring)
        fail("ring buffer");
    std::thread([ring] {
        while (true) {
            ring_buffer__consume(ring);
            usleep(1000);
        }
    }).detach();
    std::vector<Fd> links;
    links.push_back(multi(Fd(dup(bpf_program__fd(wanted))), uprobe_multi_attach_type, location, false));
    return links;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: floor entry|pair|session|perf|OBJECT:NAME PID PATH OFFSET[,OFFSET]\n");
        return 2;
    }
    const std::string kind = argv[1];
    Location location{atoi(argv[2]), argv[3], {}};
    std::istringstream offsets(argv[4]);
    for (std::string offset; std::getline(offsets, offset, ',');)
        location.offsets.push_back(strtoull(offset.c_str(), nullptr, 0));
    const size_t colon = kind.rfind(':');
    const std::vector<Fd> links = colon == kind.npos
                                      ? attach_empty(kind, location)
                                      : attach_block(kind.substr(0, colon), kind.substr(colon + 1), location);
    puts("attached");
    fflush(stdout);
    for (char byte = 0; read(STDIN_FILENO, &byte, 1) > 0;)
        ;
    _exit(0);
}
