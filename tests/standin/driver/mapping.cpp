// SPDX-License-Identifier: Apache-2.0
// Physical memory, address ranges, and mappings between them. Physical memory exists while it is mapped or has
// references. Its handle is valid only while it has references. After the last release, the next memory that is created
// gets the same handle.
#include "memory.hpp"

#include <map>
#include <sys/mman.h>
#include <unistd.h>

using namespace standin;

namespace {

struct Physical {
    Held held;
    uintptr_t handle = 0; // 0: no references
    uint64_t references = 0, mappings = 0;
};
struct Mapping {
    size_t bytes;
    Physical* of;
    Held held;
};
struct Reservation {
    size_t bytes;
    Arena::Range range;
    Held held;
};
// Never destroyed: programs may free memory in their own destructors.
auto& physical = *new std::map<uintptr_t, Physical*>;
auto& mappings = *new std::map<uintptr_t, Mapping>;
auto& reservations = *new std::map<uintptr_t, Reservation>;
auto& addresses = *new Arena(0x760000000000, 2 << 20);
auto& handles = *new Arena(0x300000000000, 256);
constexpr size_t handle_bytes = 256;

// On the heap, because a library opened with dlopen has little space for thread-local data.
std::vector<Freed>& freed()
{
    thread_local auto& last = *new std::vector<Freed>;
    return last;
}

// Callers of the following functions must hold memory_lock, except for create() and drop_reference().
void give_handle(Physical& memory)
{
    memory.handle = handles.take(handle_bytes).address;
    physical[memory.handle] = &memory;
}

void free_if_unused(Physical* memory)
{
    if (memory->references || memory->mappings)
        return;
    freed().push_back({memory->held.holding, memory->held.bytes});
    uncharge(memory->held);
    delete memory;
}

int create(uintptr_t* out, Held held)
{
    std::lock_guard lock(memory_lock);
    if (!charge(held))
        return out_of_memory;
    auto* memory = new Physical{.held = held, .references = 1};
    give_handle(*memory);
    *out = memory->handle;
    return success;
}

int drop_reference(uintptr_t handle)
{
    std::lock_guard lock(memory_lock);
    auto found = physical.find(handle);
    if (found == physical.end())
        return invalid_value;
    Physical* memory = found->second;
    if (!--memory->references) {
        physical.erase(found);
        handles.give_back({handle, handle_bytes});
        memory->handle = 0;
        free_if_unused(memory);
    }
    return success;
}

// The entry of `map` whose range contains the address.
template<class Map>
auto at(Map& map, uintptr_t address)
{
    auto after = map.upper_bound(address);
    if (after == map.begin())
        return map.end();
    --after;
    return address - after->first < after->second.bytes ? after : map.end();
}

bool any_mapping(uintptr_t start, size_t bytes)
{
    auto next = mappings.lower_bound(start);
    return at(mappings, start) != mappings.end() || (next != mappings.end() && next->first < start + bytes);
}

bool is_reserved(uintptr_t start, size_t bytes)
{
    auto range = at(reservations, start);
    return range != reservations.end() && start + bytes <= range->first + range->second.bytes;
}

// Returns true if contiguous mappings begin at `start` and end at `start + bytes`.
bool is_mapped(uintptr_t start, size_t bytes)
{
    uintptr_t address = start;
    for (auto m = mappings.find(start); m != mappings.end() && m->first == address && address < start + bytes; m++)
        address += m->second.bytes;
    return bytes && address == start + bytes;
}

int map(uintptr_t start, size_t bytes, size_t offset, uintptr_t handle)
{
    auto found = physical.find(handle);
    if (found == physical.end() || offset || !bytes || bytes > found->second->held.bytes ||
        !is_reserved(start, bytes) || any_mapping(start, bytes))
        return invalid_value;
    Mapping mapping = {bytes, found->second, {Holding::mapped, bytes, found->second->held.device, false}};
    charge(mapping.held);
    mapping.of->mappings++;
    mappings[start] = mapping;
    return success;
}

int unmap(uintptr_t start, size_t bytes)
{
    if (!is_mapped(start, bytes))
        return invalid_value;
    for (auto m = mappings.find(start); m != mappings.end() && m->first < start + bytes; m = mappings.erase(m)) {
        uncharge(m->second.held);
        m->second.of->mappings--;
        free_if_unused(m->second.of);
    }
    return success;
}

int reserve(uintptr_t* out, size_t bytes)
{
    if (!bytes)
        return invalid_value;
    Reservation reservation = {bytes, addresses.take(bytes), {Holding::reserved, bytes, 0, false}};
    charge(reservation.held);
    *out = reservation.range.address;
    reservations[*out] = reservation;
    return success;
}

int unreserve(uintptr_t start, size_t bytes)
{
    auto found = reservations.find(start);
    if (found == reservations.end() || found->second.bytes != bytes || any_mapping(start, bytes))
        return invalid_value;
    uncharge(found->second.held);
    addresses.give_back(found->second.range);
    reservations.erase(found);
    return success;
}

constexpr int file_descriptor = 1; // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

} // namespace

DRIVER(cuMemCreate)(uintptr_t* out, size_t bytes, const AllocationProperties* properties, uint64_t)
{
    if (int result = begin(Class::alloc))
        return result;
    bool host = properties && properties->location.type != Location::device;
    int device = properties && !host ? properties->location.id : 0;
    if (!bytes || !properties || device < 0 || device >= device_count)
        return invalid_value;
    return create(out, {host ? Holding::pinned : Holding::vmm, bytes, device, !host});
}

// The call is counted as a free only if it frees memory or fails.
DRIVER(cuMemRelease)(uintptr_t handle)
{
    freed().clear();
    int result = admit();
    if (!result)
        result = drop_reference(handle);
    if (result || !freed().empty())
        count(Class::free);
    return result;
}

DRIVER(cuMemRetainAllocationHandle)(uintptr_t* out, uintptr_t address)
{
    if (int result = admit())
        return result;
    std::lock_guard lock(memory_lock);
    auto found = at(mappings, address);
    if (found == mappings.end())
        return invalid_value;
    Physical& memory = *found->second.of;
    if (!memory.references++)
        give_handle(memory);
    *out = memory.handle;
    return success;
}

RETURNS(cuMemAddressReserve, (uintptr_t * out, size_t bytes, size_t, uintptr_t, uint64_t),
        locked_call(Class::alloc, memory_lock, [&] { return reserve(out, bytes); }))
RETURNS(cuMemAddressFree, (uintptr_t start, size_t bytes),
        locked_call(Class::free, memory_lock, [&] { return unreserve(start, bytes); }))
RETURNS(cuMemMap, (uintptr_t start, size_t bytes, size_t offset, uintptr_t handle, uint64_t),
        locked_call(Class::alloc, memory_lock, [&] { return map(start, bytes, offset, handle); }))
RETURNS(cuMemUnmap, (uintptr_t start, size_t bytes),
        (freed().clear(), locked_call(Class::free, memory_lock, [&] { return unmap(start, bytes); })))

DRIVER(cuMemSetAccess)(uintptr_t start, size_t bytes, const void* access, size_t)
{
    std::lock_guard lock(memory_lock);
    return access && is_mapped(start, bytes) ? success : invalid_value;
}

DRIVER(cuMulticastCreate)(uintptr_t* out, const MulticastProperties* properties)
{
    if (int result = begin(Class::alloc))
        return result;
    return create(out, {Holding::multicast, properties->bytes, 0, false});
}

// The exported file holds the memory's size.
DRIVER(cuMemExportToShareableHandle)(int* out, uintptr_t handle, int type, uint64_t)
{
    std::lock_guard lock(memory_lock);
    auto found = physical.find(handle);
    if (type != file_descriptor || found == physical.end())
        return invalid_value;
    Shared shared = {.bytes = found->second->held.bytes};
    *out = memfd_create("stand-in memory", MFD_CLOEXEC);
    return *out >= 0 && pwrite(*out, &shared, sizeof shared, 0) == sizeof shared ? success : out_of_memory;
}

DRIVER(cuMemImportFromShareableHandle)(uintptr_t* out, uintptr_t file, int type)
{
    if (int result = begin(Class::alloc))
        return result;
    Shared shared;
    if (type != file_descriptor || pread(static_cast<int>(file), &shared, sizeof shared, 0) != sizeof shared ||
        shared.magic != Shared::magic_value)
        return invalid_value;
    return create(out, {Holding::imported, shared.bytes, 0, false});
}

// Fills up to `n` entries with the physical memory that this thread's last cuMemRelease or cuMemUnmap freed; returns
// the total number of entries.
CONTROL(int, standin_freed)(Freed* out, int n)
{
    for (int i = 0; i < n && i < static_cast<int>(freed().size()); i++)
        out[i] = freed()[i];
    return static_cast<int>(freed().size());
}
