// SPDX-License-Identifier: Apache-2.0
#include "who/cuda_users.hpp"

#include "proc/cuda_libraries.hpp"
#include "proc/process.hpp"
#include "reader/helper.hpp"
#include "reader/message.hpp"
#include "reader/reader.hpp"
#include "reader/sandbox.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>

namespace gpusnoop {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t memory_bytes = 64 << 20;
constexpr auto longest = 1s;

// The question, and of those that map CUDA the answer.
struct Pids {
    std::vector<pid_t> pids;
};

void fields(auto& each, same_as_const<Pids> auto& p)
{
    each(p.pids);
}

void serve(Helper::Task& task)
{
    while (const auto message = task.connection.receive()) {
        auto pids = read_message<Pids>(message->bytes);
        if (!pids)
            return;
        std::erase_if(pids->pids, [](pid_t pid) {
            return std::ranges::none_of(mappings(pid), [](const Mapping& m) { return is_cuda(m.path); });
        });
        if (!task.connection.send(message_of(*pids)))
            return;
    }
}

} // namespace

CudaUsers cuda_users(std::span<const pid_t> of)
{
    constexpr size_t at_once = 64; // what was found before one that hangs is known
    CudaUsers found;
    if (of.empty())
        return found;
    const auto until = Reader::Clock::now() + longest;
    std::optional<Pids> answer;
    Reader reader({.sandbox = process_reading_sandbox(memory_bytes),
                   .serve = serve,
                   .apply =
                       [&answer](const Message& message) {
                           answer = read_message<Pids>(message.bytes);
                           return answer.has_value();
                       },
                   .blames = false});
    while (!of.empty() && found.all) {
        const auto some = of.first(std::min(at_once, of.size()));
        of = of.subspan(some.size());
        answer.reset();
        found.all = reader.post(0, message_of(Pids{{some.begin(), some.end()}})) && reader.wait_until(until) && answer;
        // It is about those that were asked about, or the helper has been taken over.
        if (found.all)
            std::ranges::copy_if(some, std::back_inserter(found.pids),
                                 [&](pid_t pid) { return std::ranges::find(answer->pids, pid) != answer->pids.end(); });
    }
    return found;
}

} // namespace gpusnoop
