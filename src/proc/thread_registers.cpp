// SPDX-License-Identifier: Apache-2.0
#include "proc/thread_registers.hpp"

#include "base/bpf_map.hpp"
#include "base/fd.hpp"
#include "base/skeleton.hpp"
#include "threads.skel.h"

#include <array>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

struct BpfLinkDeleter {
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};

} // namespace

struct ThreadRegisters::Iterator {
    Skeleton<threads_bpf> skeleton;
    std::unique_ptr<bpf_link, BpfLinkDeleter> link;
};

ThreadRegisters::ThreadRegisters() = default;
ThreadRegisters::~ThreadRegisters() = default;

void ThreadRegisters::begin()
{
    begun_ = true;
    auto iterator = std::make_unique<Iterator>();
    iterator->skeleton = open_skeleton<threads_bpf>();
    if (threads_bpf::load(iterator->skeleton.get()))
        return;
    iterator->link.reset(bpf_program__attach_iter(iterator->skeleton->progs.registers, nullptr));
    if (iterator->link)
        iterator_ = std::move(iterator);
}

std::vector<thread_registers> ThreadRegisters::of(const std::set<pid_t>& processes)
{
    std::vector<thread_registers> all;
    if (processes.empty())
        return all;
    if (!begun_)
        begin();
    if (!iterator_)
        return all;
    const int wanted = bpf_map__fd(iterator_->skeleton->maps.wanted);
    erase_keys(wanted, [](const std::byte*) { return true; });
    for (const pid_t process : processes) {
        const auto key = static_cast<uint32_t>(process);
        const uint32_t yes = 1;
        bpf_map_update_elem(wanted, &key, &yes, BPF_ANY);
    }
    const Fd walk(bpf_iter_create(bpf_link__fd(iterator_->link.get())));
    std::array<thread_registers, 64> found{};
    for (ssize_t n = 0; (n = ::read(walk.get(), found.data(), sizeof(found))) > 0;)
        all.insert(all.end(), found.begin(), found.begin() + n / static_cast<ssize_t>(sizeof(thread_registers)));
    return all;
}

} // namespace gpusnoop
