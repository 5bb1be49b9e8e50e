// SPDX-License-Identifier: Apache-2.0
// Steps that free memory or invalid addresses, or trim pools.
#include "alloc.hpp"
#include "kernels.hpp"
#include "steps.hpp"
#include "symbols.hpp"

#include <cstdlib>
#include <sys/mman.h>

namespace workload {
namespace {

void* untagged(void* address)
{
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) & ~standin::ignored_bits);
}

// Makes the call, and records it; invalid addresses are recorded without bytes. Returns true on success.
bool free_by(const FreeRow& row, const std::string& function, const Step& step, const Memory& memory)
{
    Pace pace(step);
    if (!is_runtime(function))
        ready_driver();
    Call call = call_of(function, "free");
    call.synchronous = !is_async(function);
    void* s = is_async(function) ? stream(step) : nullptr;
    call.stream = reinterpret_cast<uintptr_t>(s);
    call.data = memory.holding.empty()
                    ? Data{}
                    : Data{.bytes = memory.bytes, .destination = memory.kind, .holding = memory.holding};
    void* target = symbol(function);
    void* address = memory.physical ? memory.physical : memory.address;
    if (memory.physical)
        unmap_physical(memory);
    auto results = make_calls<Timed::yes>(pace, 1, [&] { return call_free(row, target, address, s); });
    if (function == "cuMemRelease")
        add_release(call, results, pace);
    else
        add_results(call, results, pace, row.nested);
    if (memory.physical)
        free_addresses(memory);
    return results[0].count;
}

const FreeRow& row_of(const Step& step, const std::string& function)
{
    const FreeRow* row = find_free_row(function);
    if (!row)
        wrong(step, function + " does not free memory");
    return *row;
}

std::string default_function(const Step& step)
{
    return step.option("fn", runtime_major ? "cudaFree" : "cuMemFree_v2");
}

// Frees an invalid address. The call must fail. If it does not, it has freed another allocation, which is an error in
// the script.
void free_invalid(const Step& step, const std::string& function, const Memory& memory)
{
    if (free_by(row_of(step, function), function, step, memory))
        wrong(step, "there was memory at this address");
}

} // namespace

// free NAME [again] [fn=FUNCTION] [stream=N]
void free_memory(const Step& step)
{
    if (step.word(1, "") == "again") {
        Memory memory = freed_before(step, step.word(0));
        memory.physical = nullptr;
        memory.holding.clear();
        return free_invalid(step, step.option("fn", memory.free_by), memory);
    }
    Memory memory = pop_memory(step, step.word(0));
    auto function = step.option("fn", memory.free_by);
    if (function == "free")
        return free(untagged(memory.address));
    if (function == "munmap")
        return static_cast<void>(munmap(untagged(memory.address), memory.bytes));
    if (!free_by(row_of(step, function), function, step, memory))
        return remember(step.word(0), memory);
    freed(step.word(0), memory);
    if (memory.kind == "registered")
        free(untagged(memory.address));
}

// badfree ADDRESS [fn=FUNCTION]
void free_address(const Step& step)
{
    Memory nothing;
    nothing.address = reinterpret_cast<void*>(step.number(0));
    free_invalid(step, default_function(step), nothing);
}

// freenull [fn=FUNCTION]: some functions accept null, others return an error.
void free_null(const Step& step)
{
    auto function = default_function(step);
    free_by(row_of(step, function), function, step, {});
}

// trim NAME [BYTES] [fn=FUNCTION]; trim graph
void trim(const Step& step)
{
    ready_driver();
    if (step.word(0) == "graph")
        setup(step.option("fn", "cuDeviceGraphMemTrim"), device());
    else {
        Step named = step;
        named.options["pool"] = step.word(0);
        size_t keep = step.words.size() > 1 ? step.number(1) : 0;
        setup(step.option("fn", "cuMemPoolTrimTo"), memory(named, "pool", Side::device).address, keep);
    }
}

} // namespace workload
