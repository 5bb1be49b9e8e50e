// SPDX-License-Identifier: Apache-2.0
#include "proc/threads.hpp"

#include "base/bpf_map.hpp"
#include "base/fd.hpp"
#include "base/text.hpp"
#include "proc/process.hpp"
#include "threads.skel.h"

#include <array>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <unistd.h>

namespace gpusnoop {

namespace {

struct ThreadExit {
    bool is_exiting = false; // the thread has exited, or is about to lose its memory and files
    uint64_t threads = 0;    // number of threads of its process, including exited ones that are still listed
};

// Returns nullopt if there is no such thread.
std::optional<ThreadExit> state_of(const std::string& folder)
{
    constexpr size_t max = 4096;
    constexpr int state_field = 3, flags_field = 9, threads_field = 20;
    constexpr uint64_t exiting_flag = 4; // PF_EXITING of include/linux/sched.h
    const std::string text = read_text(folder + "/stat", max).value_or("");
    const auto flags = parse_number<uint64_t>(stat_field(text, flags_field));
    const auto threads = parse_number<uint64_t>(stat_field(text, threads_field));
    if (!flags || !threads)
        return std::nullopt;
    const std::string_view state = stat_field(text, state_field);
    return ThreadExit{.is_exiting = state == "Z" || state == "X" || (*flags & exiting_flag), .threads = *threads};
}

} // namespace

std::optional<pid_t> running_thread(pid_t pid)
{
    const std::string folder = fmt::format("/proc/{}", pid);
    const auto main = state_of(folder);
    if (!main || !main->is_exiting)
        return main ? std::optional(pid) : std::nullopt;
    std::error_code error;
    if (main->threads > 1)
        for (std::filesystem::directory_iterator entry(folder + "/task", error), end; !error && entry != end;
             entry.increment(error)) {
            const std::string name = entry->path().filename();
            const pid_t tid = leading_number<pid_t>(name).value_or(0);
            if (const auto state = state_of(entry->path()); tid > 0 && state && !state->is_exiting)
                return tid;
        }
    return std::nullopt;
}

std::optional<pid_t> other_running_thread(pid_t pid)
{
    const auto thread = running_thread(pid);
    return thread != pid ? thread : std::nullopt;
}

ThreadState parse_thread_state(std::string_view status)
{
    ThreadState found;
    if (const std::string_view state = status_value(status, "State"); !state.empty())
        found.state = state.front();
    found.tracer = leading_number<pid_t>(status_value(status, "TracerPid")).value_or(0);
    return found;
}

ThreadState thread_state(pid_t pid, pid_t tid)
{
    constexpr size_t max = 16 << 10;
    return parse_thread_state(read_text(fmt::format("/proc/{}/task/{}/status", pid, tid), max).value_or(""));
}

struct ThreadRegisters::Iterator {
    Skeleton<threads_bpf> skeleton;
    BpfLink link;
};

ThreadRegisters::ThreadRegisters() = default;
ThreadRegisters::~ThreadRegisters() = default;

void ThreadRegisters::begin()
{
    started_ = true;
    auto iterator = std::make_unique<Iterator>();
    iterator->skeleton = open_skeleton<threads_bpf>();
    if (threads_bpf::load(iterator->skeleton.get()))
        return;
    iterator->link.reset(bpf_program__attach_iter(iterator->skeleton->progs.registers, nullptr));
    if (iterator->link)
        iterator_ = std::move(iterator);
}

std::vector<thread_registers> ThreadRegisters::read(const std::set<pid_t>& processes)
{
    std::vector<thread_registers> all;
    if (processes.empty())
        return all;
    if (!started_)
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
