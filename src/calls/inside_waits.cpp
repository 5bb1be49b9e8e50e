// SPDX-License-Identifier: Apache-2.0
#include "calls/inside_waits.hpp"

namespace gpusnoop {
namespace {

bool is_wait(const probe_row& row)
{
    if (row.asynchronous || row.wait == WAIT_POLL || row.wait == WAIT_VALUE)
        return false;
    return row.kind == KIND_WAIT || (row.kind == KIND_COPY && row.direction != DIRECTION_SET) ||
           (row.kind == KIND_FREE && row.wait == WAIT_FREE);
}

} // namespace

std::vector<std::string_view> symbols_of_waits(std::span<const Probe> probes, bool driver, bool runtime)
{
    std::vector<std::string_view> symbols;
    for (const Probe& probe : probes) {
        const bool counted = probe.library == Library::driver ? driver : runtime;
        symbols.push_back(counted && is_wait(probe.row) ? std::string_view(probe.symbol) : std::string_view());
    }
    return symbols;
}

InsideQuestion::Thread question_of(const thread_registers& r)
{
    InsideQuestion::Thread thread{r.thread, r.ip, r.sp, r.bp, r.bx, r.r12, r.r13, r.r14, r.r15};
    for (const replaced_return& replaced : r.replaced)
        if (replaced.slot)
            thread.replaced.push_back({replaced.slot, replaced.address});
    return thread;
}

} // namespace gpusnoop
