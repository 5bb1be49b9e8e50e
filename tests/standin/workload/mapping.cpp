// SPDX-License-Identifier: Apache-2.0
// Steps for physical memory, address ranges and mappings, which caching allocators use. The stand-in driver counts
// references; it reports the memory that a release or unmap frees.
#include "alloc.hpp"
#include "steps.hpp"
#include "symbols.hpp"

#include <utility>

namespace workload {
namespace {

using standin::Holding;

Pace no_pace()
{
    static const Step nothing;
    return Pace(nothing);
}

int reserve(void** out, size_t bytes, const Pace& pace)
{
    void* target = symbol("cuMemAddressReserve");
    return record_call(pace, "cuMemAddressReserve", "alloc", data_of(Holding::reserved, bytes),
                       [&] { return call_symbol(target, out, bytes, 0ull, nullptr, 0ull); });
}

int map(void* address, size_t bytes, void* handle, const Pace& pace)
{
    struct {
        standin::Location location = {standin::Location::device, 0};
        int flags = 3;
    } access;
    void* target = symbol("cuMemMap");
    int result = record_call(pace, "cuMemMap", "alloc", data_of(Holding::mapped, bytes),
                             [&] { return call_symbol(target, address, bytes, 0ull, handle, 0ull); });
    if (!result)
        setup("cuMemSetAccess", address, bytes, &access, static_cast<size_t>(1));
    return result;
}

int unmap(void* address, size_t bytes, const Pace& pace)
{
    void* target = symbol("cuMemUnmap");
    int result = record_call(pace, "cuMemUnmap", "free", data_of(Holding::mapped, bytes),
                             [&] { return call_symbol(target, address, bytes); });
    if (!result)
        add_implied(freed_by_last_call(), "cuMemUnmap");
    return result;
}

int unreserve(void* address, size_t bytes, const Pace& pace)
{
    void* target = symbol("cuMemAddressFree");
    return record_call(pace, "cuMemAddressFree", "free", data_of(Holding::reserved, bytes),
                       [&] { return call_symbol(target, address, bytes); });
}

} // namespace

Data data_of(Holding holding, uint64_t bytes)
{
    return {.bytes = bytes, .holding = standin::holding_names[static_cast<int>(holding)]};
}

std::vector<standin::Freed> freed_by_last_call()
{
    void* get_freed = driver_symbol("standin_freed");
    if (!get_freed)
        return {};
    std::vector<standin::Freed> list(static_cast<size_t>(call_symbol(get_freed, nullptr, 0)));
    call_symbol(get_freed, list.data(), static_cast<int>(list.size()));
    return list;
}

void add_implied(const std::vector<standin::Freed>& list, const std::string& function)
{
    for (const auto& freed : list) {
        Call call = call_of(function, "free");
        call.implied = true;
        call.data = data_of(freed.holding, freed.bytes);
        add(call, {1});
    }
}

void add_release(Call call, const Results& results, const Pace& pace)
{
    auto freed = freed_by_last_call();
    bool released = results.contains(0) && results.at(0).count;
    if (released && freed.empty()) {
        call.kind = "setup";
        call.device = -1;
        call.synchronous = {};
    } else if (released) {
        call.data->bytes = freed[0].bytes;
        call.data->holding = standin::holding_names[static_cast<int>(freed[0].holding)];
    }
    add_results(call, results, pace);
}

void map_physical(Memory& memory)
{
    memory.physical = std::exchange(memory.address, nullptr);
    reserve(&memory.address, memory.bytes, no_pace());
    map(memory.address, memory.bytes, memory.physical, no_pace());
}

void unmap_physical(const Memory& memory)
{
    unmap(memory.address, memory.bytes, no_pace());
}

void free_addresses(const Memory& memory)
{
    unreserve(memory.address, memory.bytes, no_pace());
}

// reserve NAME BYTES
void reserve_addresses(const Step& step)
{
    ready_driver();
    Memory range = {.bytes = step.number(1), .holding = "reserved", .place = place()};
    if (!reserve(&range.address, range.bytes, Pace(step)))
        remember(step.word(0), range);
}

// map NAME handle=NAME at=NAME[+OFFSET] [bytes=]
void map_memory(const Step& step)
{
    ready_driver();
    Memory physical = memory(step, "handle", Side::device), range = memory(step, "at", Side::device);
    Memory mapping = {.kind = "vmm",
                      .side = physical.side,
                      .address = range.pointer(),
                      .bytes = step.number("bytes", physical.bytes),
                      .holding = "mapped",
                      .place = place(),
                      .mapped_bytes = physical.bytes};
    if (!map(mapping.address, mapping.bytes, physical.address, Pace(step)))
        remember(step.word(0), mapping);
}

// retain NAME at=NAME[+OFFSET]: the first NAME becomes another reference to the memory mapped at the second.
void retain(const Step& step)
{
    ready_driver();
    Memory mapping = memory(step, "at", Side::device);
    Pace pace(step);
    void *handle = nullptr, *target = symbol("cuMemRetainAllocationHandle");
    if (!record_call(pace, "cuMemRetainAllocationHandle", "setup", data_of(Holding::vmm, mapping.mapped_bytes),
                     [&] { return call_symbol(target, &handle, mapping.pointer()); }))
        remember(step.word(0), {.kind = "vmm",
                                .address = handle,
                                .bytes = mapping.mapped_bytes,
                                .holding = "vmm",
                                .free_by = "cuMemRelease",
                                .place = place()});
}

// unmap NAME | unmap at=NAME[+OFFSET] bytes=N (all mappings in this range)
void unmap_memory(const Step& step)
{
    ready_driver();
    Step named = step;
    if (!step.has("at"))
        named.options["at"] = step.word(0);
    Memory start = memory(named, "at", Side::device);
    size_t bytes = step.number("bytes", start.bytes);
    if (!unmap(start.pointer(), bytes, Pace(step)))
        forget_mappings(start.pointer(), bytes);
}

// unreserve NAME
void unreserve_addresses(const Step& step)
{
    ready_driver();
    Memory range = pop_memory(step, step.word(0));
    if (unreserve(range.address, range.bytes, Pace(step)))
        remember(step.word(0), range);
}

} // namespace workload
