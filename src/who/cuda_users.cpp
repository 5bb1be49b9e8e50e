// SPDX-License-Identifier: Apache-2.0
#include "who/cuda_users.hpp"

#include "base/error.hpp"
#include "proc/cuda_libraries.hpp"
#include "proc/process.hpp"
#include "reader/helper.hpp"
#include "reader/message.hpp"
#include "reader/reader.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace gpusnoop {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

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
    confine_reader(memory_bytes);
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
    const auto until = Clock::now() + longest;
    try {
        Helper helper(serve);
        while (!of.empty() && found.all) {
            const auto some = of.first(std::min(at_once, of.size()));
            of = of.subspan(some.size());
            helper.connection().send(message_of(Pids{{some.begin(), some.end()}}), -1, true);
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
            const auto message = helper.connection().receive(std::max(left, 0ms));
            const auto answer = message ? read_message<Pids>(message->bytes) : std::nullopt;
            found.all = answer.has_value();
            // What it says is of those that were asked about, or it has been taken over.
            if (answer)
                std::ranges::copy_if(some, std::back_inserter(found.pids), [&](pid_t pid) {
                    return std::ranges::find(answer->pids, pid) != answer->pids.end();
                });
        }
    } catch (const Error&) {
        found.all = false; // no helper: the mistake is still to be told
    }
    return found;
}

} // namespace gpusnoop
