// SPDX-License-Identifier: Apache-2.0
// Physical memory, address ranges, and mapping the one into the other, each call by itself as caching allocators make
// them. What a release or an unmapping frees the driver says: it counts references.
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
    return tell(pace, "cuMemAddressReserve", "alloc", data_of(Holding::reserved, bytes),
                [&] { return call_symbol(target, out, bytes, 0ull, nullptr, 0ull); });
}

int map(void* address, size_t bytes, void* handle, const Pace& pace)
{
    struct {
        standin::Location location = {standin::Location::device, 0};
        int flags = 3;
    } access;
    void* target = symbol("cuMemMap");
    int result = tell(pace, "cuMemMap", "alloc", data_of(Holding::mapped, bytes),
                      [&] { return call_symbol(target, address, bytes, 0ull, handle, 0ull); });
    if (!result)
        setup("cuMemSetAccess", address, bytes, &access, static_cast<size_t>(1));
    return result;
}

int unmap(void* address, size_t bytes, const Pace& pace)
{
    void* target = symbol("cuMemUnmap");
    int result = tell(pace, "cuMemUnmap", "free", data_of(Holding::mapped, bytes),
                      [&] { return call_symbol(target, address, bytes); });
    if (!result)
        add_implied(freed_by_last_call(), "cuMemUnmap");
    return result;
}

int unreserve(void* address, size_t bytes, const Pace& pace)
{
    void* target = symbol("cuMemAddressFree");
    return tell(pace, "cuMemAddressFree", "free", data_of(Holding::reserved, bytes),
                [&] { return call_symbol(target, address, bytes); });
}

} // namespace

Data data_of(Holding holding, uint64_t bytes)
{
    return {.bytes = bytes, .holding = standin::holding_names[static_cast<int>(holding)]};
}

std::vector<standin::Freed> freed_by_last_call()
{
    void* ask = driver_symbol("standin_freed");
    if (!ask)
        return {};
    std::vector<standin::Freed> list(static_cast<size_t>(call_symbol(ask, nullptr, 0)));
    call_symbol(ask, list.data(), static_cast<int>(list.size()));
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
    bool went = results.contains(0) && results.at(0).count;
    if (went && freed.empty()) {
        call.kind = "setup";
        call.device = -1;
        call.synchronous = {};
    } else if (went) {
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
    Memory mapping = {.what = "vmm",
                      .side = physical.side,
                      .address = range.pointer(),
                      .bytes = step.number("bytes", physical.bytes),
                      .holding = "mapped",
                      .place = place(),
                      .of = physical.bytes};
    if (!map(mapping.address, mapping.bytes, physical.address, Pace(step)))
        remember(step.word(0), mapping);
}

// retain NAME at=NAME[+OFFSET]: another reference, which NAME stands for.
void retain(const Step& step)
{
    ready_driver();
    Memory mapping = memory(step, "at", Side::device);
    Pace pace(step);
    void *handle = nullptr, *target = symbol("cuMemRetainAllocationHandle");
    if (!tell(pace, "cuMemRetainAllocationHandle", "setup", data_of(Holding::vmm, mapping.of),
              [&] { return call_symbol(target, &handle, mapping.pointer()); }))
        remember(step.word(0), {.what = "vmm",
                                .address = handle,
                                .bytes = mapping.of,
                                .holding = "vmm",
                                .free_by = "cuMemRelease",
                                .place = place()});
}

// unmap NAME | unmap at=NAME[+OFFSET] bytes=N: all mappings that are there.
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
    Memory range = take(step, step.word(0));
    if (unreserve(range.address, range.bytes, Pace(step)))
        remember(step.word(0), range);
}

} // namespace workload
