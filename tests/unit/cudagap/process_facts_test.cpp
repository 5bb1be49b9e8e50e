// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/circumstances.hpp"

#include "tests/unit/base/folder.hpp"
#include "tests/unit/proc/threads_of_child.hpp"
#include "tools/cudagap/peers.hpp"

#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace gpusnoop;

TEST_CASE("facts are parsed despite parentheses and keys in the process name")
{
    const ProcessFacts facts = parse_process_facts("77 (a) R 9 9) S 1 2 3 4 5 6 7 8 4711 10 11 12 13 14 15 16 17 18",
                                                   "Name:\tVmSwap: 9\nVmSwap:\t    1200 kB\nThreads:\t65\n",
                                                   "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\n");
    CHECK(facts.major_faults == 4711);
    CHECK(facts.swapped_bytes == 1200 * 1024);
    CHECK(facts.threads == 65);
    CHECK(facts.read_bytes == 4096);
    CHECK(facts.written_bytes == 8192);
}

TEST_CASE("missing or invalid fields are not known")
{
    const ProcessFacts none = parse_process_facts("", "", "");
    CHECK(!none.major_faults);
    CHECK(!none.swapped_bytes);
    CHECK(!none.threads);
    CHECK(!none.read_bytes);
    CHECK(!parse_process_facts("77 (a) S 1 2", "Threads:\tmany\n", "cancelled_write_bytes: 5\n").major_faults);
    CHECK(!parse_process_facts("", "", "cancelled_write_bytes: 5\n").written_bytes);
    CHECK(!process_facts(0x7fffffff).threads);
    CHECK(!parse_process_facts("77 (a) Z 1 2 3 4 5 6 7 8 9 10 11", "Threads:\t1\n", "").threads);
}

TEST_CASE("process_facts counts the threads of this process")
{
    const ProcessFacts before = process_facts(getpid());
    REQUIRE(before.threads);
    std::jthread another([](const std::stop_token& stop) {
        while (!stop.stop_requested())
            std::this_thread::yield();
    });
    CHECK(process_facts(getpid()).threads == *before.threads + 1);
    CHECK(before.major_faults.has_value());
    CHECK(before.allowed_cpus > 0);
}

TEST_CASE("a process whose main thread has exited has facts, and sockets in a network namespace")
{
    const Fd open_socket(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const ThreadsOfChild child(1, [] {});
    child.end_main();
    CHECK(network_namespace(child.pid()) == network_namespace(getpid()));
    CHECK_FALSE(socket_inodes(getpid()).inodes.empty());
    CHECK(socket_inodes(child.pid()).inodes == socket_inodes(getpid()).inodes);
    CHECK(process_facts(child.pid()).swapped_bytes);
}

TEST_CASE("gpu_nodes ignores other devices and unknown nodes")
{
    const Folder root;
    CHECK(gpu_nodes(root.path()).empty());
    const auto add = [&](const std::string& name, const std::string& vendor, const std::string& kind,
                         const char* node) {
        const std::string device = "bus/pci/devices/" + name;
        root.file(device + "/vendor", vendor + "\n");
        root.file(device + "/class", kind + "\n");
        root.file(device + "/numa_node", std::string(node) + "\n");
    };
    add("gpu", "0x10de", "0x030200", "1");
    add("its sound", "0x10de", "0x040300", "2");
    add("unknown", "0x10de", "0x030000", "-1");
    add("another", "0x8086", "0x030000", "3");
    CHECK(gpu_nodes(root.path()) == std::set<unsigned>{1});
}
