// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_list.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace gpusnoop {
namespace {

using Room = std::span<const unsigned char>;

NvmlElement element_at(Room room, size_t index, size_t size)
{
    NvmlElement element{0, 0, 0, nvml_no_instance, nvml_no_instance};
    memcpy(&element, room.data() + index * size, std::min(size, sizeof(element)));
    return element;
}

bool plausible(Room room, unsigned count, size_t size)
{
    const auto id = [](uint32_t value) { return nvml_has_instance(value) || value == nvml_no_instance; };
    for (unsigned i = 0; i < count; i++) {
        const NvmlElement element = element_at(room, i, size);
        if (!nvml_has_pid(element.pid) || !id(element.gpu_instance) || !id(element.compute_instance))
            return false;
    }
    return true;
}

// The room is filled with it before. No element ends with it: that is the upper end of a size, or of an id.
constexpr unsigned char unwritten = 0xa5;

// The size of the elements, 0 if that cannot be told. It is measured, because neither the symbol nor the version tells
// it: _v3 had 32 bytes from driver 535.43.02 to 535.86.05 (24 before, and again from 535.104.05), and users have
// reported 24 instead of 16 for the list of MPS clients without a suffix, and 16 for _v3 in a container (550.127.08).
size_t measure(Room room, unsigned count, unsigned capacity, size_t documented)
{
    const auto last = std::find_if(room.rbegin(), room.rend(), [](unsigned char byte) { return byte != unwritten; });
    const auto written = static_cast<size_t>(room.rend() - last);
    for (const size_t size : {nvml_small_element, sizeof(NvmlElement), nvml_large_element}) {
        const bool fits = written == count * size || (size > nvml_small_element && written == count * size - 8);
        if (fits && (size == documented || plausible(room, count, size))) // the last 8 bytes may be left out
            return size;
    }
    // It may have used more of the room than it says. Then it is as documented, or not at all.
    return written <= capacity * documented && plausible(room, count, documented) ? documented : 0;
}

} // namespace

std::vector<NvmlElement> read_nvml_list(const NvmlList& list, NvmlDevice device, int& code)
{
    std::vector<unsigned char> room;
    unsigned capacity = 0; // the first call asks for the number, so that the second fills the room
    for (int i = 0; i < nvml_max_tries; i++) {
        room.assign((capacity + size_t{1}) * nvml_large_element, unwritten); // what writes too much stays inside
        unsigned count = capacity;
        code = list.function(device, &count, capacity ? room.data() : nullptr);
        if (code == NVML_INSUFFICIENT_SIZE) {
            if (capacity >= nvml_max_room)
                return {};
            capacity = nvml_more_room(capacity, count);
            continue;
        }
        if (code != NVML_OK || count == 0)
            return {};
        const size_t size = count <= capacity ? measure(room, count, capacity, list.element) : 0;
        if (size == 0) {
            code = NVML_NONSENSE; // unless the next try is better: some may have ended since they were counted
            capacity = 0;
            continue;
        }
        std::vector<NvmlElement> elements;
        for (unsigned k = 0; k < count; k++)
            if (const NvmlElement element = element_at(room, k, size); nvml_has_pid(element.pid))
                elements.push_back(element);
        return elements;
    }
    return {};
}

} // namespace gpusnoop
