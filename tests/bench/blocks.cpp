// SPDX-License-Identifier: Apache-2.0
// Attaches one program of blocks.bpf.c, by name, until stdin is closed.
//
//     blocks OBJECT NAME PID PATH OFFSET
#include "base/fd.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <unistd.h>

namespace {

[[noreturn]] void fail(const char* what)
{
    fprintf(stderr, "blocks: %s: %s\n", what, strerror(errno));
    exit(1);
}

struct Close {
    void operator()(bpf_object* object) const { bpf_object__close(object); }
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
    void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

} // namespace

int main(int argc, char** argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: blocks OBJECT NAME PID PATH OFFSET\n");
        return 2;
    }
    const std::unique_ptr<bpf_object, Close> object(bpf_object__open(argv[1]));
    if (!object)
        fail(argv[1]);
    bpf_program* wanted = nullptr;
    bpf_program* program = nullptr;
    bpf_object__for_each_program (program, object.get()) {
        const bool is_wanted = strcmp(bpf_program__name(program), argv[2]) == 0;
        bpf_program__set_autoload(program, is_wanted);
        if (is_wanted)
            wanted = program;
    }
    bpf_map__set_max_entries(bpf_object__find_map_by_name(object.get(), "lines"),
                             2); // entry 0: the reader's position; entry 1: a line
    if (!wanted || bpf_object__load(object.get()))
        fail(argv[2]);
    const unsigned long offset = strtoul(argv[5], nullptr, 0);
    LIBBPF_OPTS(bpf_uprobe_multi_opts, options);
    options.offsets = &offset;
    options.cnt = 1;
    const std::unique_ptr<bpf_link, Close> link(
        bpf_program__attach_uprobe_multi(wanted, atoi(argv[3]), argv[4], nullptr, &options));
    if (!link)
        fail("attach");
    // Without a reader the ring buffer would fill up. Reserving space in a full buffer fails immediately, and is
    // cheaper than a normal reservation.
    const std::unique_ptr<ring_buffer, Close> ring(ring_buffer__new(
        bpf_object__find_map_fd_by_name(object.get(), "ring"), [](void*, void*, size_t) { return 0; }, nullptr,
        nullptr));
    if (!ring)
        fail("ring buffer");
    std::jthread reader([&ring](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            ring_buffer__consume(ring.get());
            usleep(1000);
        }
    });
    puts("attached");
    fflush(stdout);
    for (char byte = 0; read(STDIN_FILENO, &byte, 1) > 0;)
        ;
    return 0;
}
