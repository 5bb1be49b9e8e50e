// SPDX-License-Identifier: Apache-2.0
// A thread that launches, and is interrupted for a known time:
//     interrupted PACKETS EACH_US
// In a network namespace of its own, it sends PACKETS packets to itself. It is interrupted for EACH_US microseconds by
// each packet that it receives, and after each 10 ms of CPU time. It creates the file "up" when ready, launches until
// the file "go" exists, then sends the packets, and prints a line of JSON with measured times.
#include "busy.skel.h"

#include <arpa/inet.h>
#include <array>
#include <bpf/libbpf.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <linux/if_link.h>
#include <linux/perf_event.h>
#include <memory>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern "C" int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data);

namespace {

int checked(int result, const char* what)
{
    if (result >= 0)
        return result;
    perror(what);
    exit(1);
}

uint64_t now_ns()
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void launch()
{
    cuLaunchHostFunc(
        nullptr, [](void*) {}, nullptr);
}

// A socket connected to itself, in a new network namespace.
int make_own_socket()
{
    checked(unshare(CLONE_NEWNET), "unshare");
    const int socket = checked(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
    ifreq loopback{.ifr_ifrn = {"lo"}, .ifr_ifru = {}};
    loopback.ifr_flags = IFF_UP;
    checked(ioctl(socket, SIOCSIFFLAGS, &loopback), "lo up");
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    checked(bind(socket, generic, sizeof(address)), "bind");
    checked(connect(socket, generic, sizeof(address)), "connect");
    return socket;
}

// A perf event on this thread's CPU time, driven by a timer interrupt.
int open_timer()
{
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.size = sizeof(attributes);
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    attributes.sample_period = 10'000'000; // ns
    return checked(static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)),
                   "perf_event_open");
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 3)
        return 2;
    const long packets = atol(argv[1]);
    const int socket = make_own_socket();
    const std::unique_ptr<busy_bpf, decltype(&busy_bpf::destroy)> busy(busy_bpf::open(), &busy_bpf::destroy);
    busy->rodata->thread = static_cast<uint32_t>(gettid());
    busy->rodata->each_ns = strtoull(argv[2], nullptr, 10) * 1000;
    checked(busy_bpf::load(busy.get()), "load");
    checked(bpf_xdp_attach(static_cast<int>(if_nametoindex("lo")), bpf_program__fd(busy->progs.receive),
                           XDP_FLAGS_SKB_MODE, nullptr),
            "attach to lo");
    busy->links.time_passes = bpf_program__attach_perf_event(busy->progs.time_passes, open_timer());
    checked(busy->links.time_passes ? 0 : -1, "attach to a timer");

    std::ofstream("up").close();
    while (!std::filesystem::exists("go")) {
        launch();
        usleep(1000);
    }
    const auto soft_before = busy->bss->soft_ns, hard_before = busy->bss->hard_ns;
    const uint64_t begin = now_ns();
    std::array<char, 16> packet{};
    for (long i = 0; i < packets; i++) {
        launch();
        checked(static_cast<int>(send(socket, packet.data(), packet.size(), 0)), "send");
        checked(static_cast<int>(recv(socket, packet.data(), packet.size(), 0)), "receive");
    }
    launch();
    printf(R"({"tid": %d, "wall_ns": %lu, "soft_ns": %llu, "hard_ns": %llu, "soft_count": %llu, "hard_count": %llu})"
           "\n",
           gettid(), now_ns() - begin, busy->bss->soft_ns - soft_before, busy->bss->hard_ns - hard_before,
           busy->bss->soft_count, busy->bss->hard_count);
    return 0;
}
