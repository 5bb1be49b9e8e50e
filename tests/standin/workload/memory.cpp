// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <map>
#include <mutex>

namespace workload {
namespace {

std::mutex lock; // protects the maps below
std::map<std::string, std::vector<Memory>> named;
std::map<std::string, Memory> freed_last;
std::map<std::pair<Place, Side>, Memory> defaults;

constexpr size_t default_bytes = 256 << 20; // device memory of the stand-in is only addresses, so this costs nothing

Memory host_buffer(const std::string& key)
{
    alignas(4096) static char buffers[2][64 << 20]; // memory that a real driver can access
    return {.kind = "host", .side = Side::host, .address = buffers[key == "src"], .bytes = sizeof buffers[0]};
}

template<class F>
void erase_named(F predicate)
{
    for (auto& [name, list] : named)
        std::erase_if(list, predicate);
}

Memory default_memory(Side side)
{
    std::lock_guard hold(lock); // held during the allocation, so that only one thread makes it
    auto& memory = defaults[{place(), side}];
    if (!memory.address)
        memory = allocate_default(side, default_bytes);
    return memory;
}

} // namespace

void remember(const std::string& name, const Memory& memory)
{
    std::lock_guard hold(lock);
    named[name].push_back(memory);
}

Memory pop_memory(const Step& step, const std::string& name)
{
    std::lock_guard hold(lock);
    auto found = named.find(name);
    if (found == named.end() || found->second.empty())
        wrong(step, "no memory named " + name);
    Memory memory = found->second.back();
    found->second.pop_back();
    return memory;
}

void forget_memory(const Place& destroyed)
{
    std::lock_guard hold(lock);
    erase_named([&](const Memory& m) { return m.owned && m.place == destroyed; });
    std::erase_if(defaults, [&](auto& entry) { return entry.first.first == destroyed; });
}

void forget_mappings(const void* start, size_t bytes)
{
    std::lock_guard hold(lock);
    auto from = static_cast<const char*>(start);
    erase_named([&](const Memory& m) {
        return m.mapped_bytes && m.address >= start && static_cast<const char*>(m.address) < from + bytes;
    });
}

void freed(const std::string& name, const Memory& memory)
{
    std::lock_guard hold(lock);
    freed_last[name] = memory;
}

Memory freed_before(const Step& step, const std::string& name)
{
    std::lock_guard hold(lock);
    auto found = freed_last.find(name);
    if (found == freed_last.end())
        wrong(step, name + " was not freed");
    return found->second;
}

Memory memory(const Step& step, const std::string& key, Side fallback)
{
    static char shadow;
    if (fallback == Side::symbol)
        return {.kind = "device", .side = Side::device, .address = &shadow, .bytes = 1};
    if (!step.has(key))
        return fallback == Side::host ? host_buffer(key) : default_memory(fallback);
    auto text = step.option(key, "");
    auto plus = text.find('+');
    auto name = text.substr(0, plus);
    std::lock_guard hold(lock);
    auto found = named.find(name);
    if (found == named.end() || found->second.empty())
        wrong(step, "no memory named " + name);
    Memory memory = found->second.back();
    memory.offset = plus == std::string::npos ? 0 : std::stoull(text.substr(plus + 1), nullptr, 0);
    return memory;
}

} // namespace workload
