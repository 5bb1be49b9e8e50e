// SPDX-License-Identifier: Apache-2.0
#include "who/cuda_users.hpp"

#include "base/privileges.hpp"
#include "base/text.hpp"
#include "proc/cuda_libraries.hpp"
#include "proc/process.hpp"
#include "reader/helper.hpp"
#include "reader/message.hpp"
#include "reader/reader.hpp"
#include "reader/sandbox.hpp"
#include "who/processes.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <iterator>
#include <linux/capability.h>
#include <optional>
#include <set>
#include <vector>

namespace gpusnoop {

namespace {

using namespace std::chrono_literals;

constexpr uint64_t max_scan_memory = 64 << 20;
constexpr auto patience = 1s;

// Request and reply: the processes to inspect, and the processes among them that map CUDA.
struct Pids {
    std::vector<pid_t> pids;
};

void fields(auto& each, same_as_const<Pids> auto& p)
{
    each(p.pids);
}

void serve_cuda_users(Helper::Task& task)
{
    answer_each<Pids>(task, [](Pids& pids) -> const Pids& {
        std::erase_if(pids.pids, [](pid_t pid) {
            return std::ranges::none_of(mappings(pid), [](const Mapping& m) { return is_cuda(m.path); });
        });
        return pids;
    });
}

} // namespace

CudaUsers cuda_users(std::span<const pid_t> pids)
{
    constexpr size_t batch = 64; // if a process makes the helper hang, the results of earlier batches are kept
    CudaUsers found;
    if (pids.empty())
        return found;
    const auto until = Reader::Clock::now() + patience;
    std::optional<Pids> answer;
    Reader reader({.sandbox = process_reading_sandbox(max_scan_memory),
                   .serve = serve_cuda_users,
                   .apply =
                       [&answer](const Message& message) {
                           answer = read_message<Pids>(message.bytes);
                           return answer.has_value();
                       },
                   .blames = false});
    while (!pids.empty() && found.complete) {
        const auto some = pids.first(std::min(batch, pids.size()));
        pids = pids.subspan(some.size());
        answer.reset();
        found.complete =
            reader.post(0, message_of(Pids{{some.begin(), some.end()}})) && reader.wait_until(until) && answer;
        // Ignore pids that were not in the request, because an attacker may have taken over the helper.
        if (found.complete)
            std::ranges::copy_if(some, std::back_inserter(found.pids),
                                 [&](pid_t pid) { return std::ranges::find(answer->pids, pid) != answer->pids.end(); });
    }
    return found;
}

namespace {

// Returns the container or pod of a process in the form that -c accepts; empty if the process is in neither.
std::string container_of(const Owner& owner)
{
    if (!owner.names.pod.empty() && !owner.names.pod_namespace.empty())
        return fmt::format("pod:{}/{}", owner.names.pod_namespace, owner.names.pod);
    return owner.container() ? owner.container_name() : std::string();
}

} // namespace

std::string listed(const std::vector<std::string>& texts, size_t max)
{
    if (texts.size() <= max)
        return joined(texts, ", ");
    return fmt::format("{} and {} more", joined(std::span(texts).first(max), ", "), texts.size() - max);
}

std::string cuda_processes_named(std::string_view name)
{
    constexpr size_t named_max = 4;
    std::vector<pid_t> pids = all_processes();
    std::erase_if(pids, [name](pid_t pid) { return process_name(pid).value_or("").find(name) == std::string::npos; });
    std::vector<std::string> found;
    for (const pid_t pid : cuda_users(pids).pids)
        found.push_back(fmt::format("{} ({})", pid, process_name(pid).value_or("ended")));
    if (found.empty())
        return {};
    return fmt::format("process{} {} map{} CUDA", found.size() == 1 ? "" : "es", listed(found, named_max),
                       found.size() == 1 ? "s" : "");
}

std::string containers_with_cuda(const std::string& host_root)
{
    constexpr size_t named_max = 8;
    if (!has_capability(CAP_SYS_PTRACE)) // without it, most mappings cannot be read
        return {};
    const CudaUsers users = cuda_users(all_processes());
    Processes processes(-1, host_root);
    std::set<std::string> found;
    for (const pid_t pid : users.pids)
        if (std::string name = container_of(processes.owner(processes.track(static_cast<uint32_t>(pid)), {}));
            !name.empty())
            found.insert(std::move(name));
    if (found.empty())
        return users.complete ? "no container runs a process that maps CUDA" : "";
    return "containers with processes that map CUDA: " + listed({found.begin(), found.end()}, named_max);
}

} // namespace gpusnoop
