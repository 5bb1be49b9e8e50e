// SPDX-License-Identifier: Apache-2.0
// Fills every structure by which a copy function can describe a copy. The rows of 2D and 3D copies are contiguous,
// without padding.
#include "copy.hpp"

namespace workload {
namespace {

using standin::MemoryType;

// Stores the address in the member for this memory type. Unified memory uses the member for device memory.
template<class Structure>
void set_address(Structure& side, const Memory& memory, MemoryType type)
{
    side.type = type;
    if (type == MemoryType::array) {
        side.array = memory.pointer();
        side.x = memory.offset;
    } else
        (type == MemoryType::host ? side.host : side.device) = memory.pointer();
}

standin::RuntimeCopy3DSide runtime_side(const Memory& memory, const Request& r)
{
    standin::RuntimeCopy3DSide side = {};
    if (memory.side == Side::array) {
        side.array = memory.pointer();
        side.position.width = memory.offset;
    } else
        side.pointer = {memory.pointer(), r.width, r.width, r.height};
    return side;
}

standin::BatchOperand operand(const Memory& memory, size_t offset)
{
    bool array = memory.side == Side::array;
    unsigned type = array ? standin::BatchOperand::is_array : standin::BatchOperand::is_pointer;
    return {type, memory.pointer() + (array ? 0 : offset), 0, 0, {}};
}

} // namespace

void fill_structures(Request& r)
{
    set_address(r.plane.source, r.from, r.from_type);
    set_address(r.plane.destination, r.to, r.to_type);
    r.plane.source.pitch = r.plane.destination.pitch = r.width;
    r.plane.width = r.width;
    r.plane.height = r.height;

    set_address(r.volume.source, r.from, r.from_type);
    set_address(r.volume.destination, r.to, r.to_type);
    r.volume.source.pitch = r.volume.destination.pitch = r.width;
    r.volume.source.height = r.volume.destination.height = r.height;
    r.volume.width = r.width;
    r.volume.height = r.height;
    r.volume.depth = r.depth;

    standin::Extent extent = {r.width, r.height, r.depth};
    r.runtime_volume = {runtime_side(r.from, r), runtime_side(r.to, r), extent, r.kind};
    r.runtime_peer_volume = {runtime_side(r.from, r), 0, runtime_side(r.to, r), 1, extent};

    size_t done = 0;
    for (size_t size : r.sizes) {
        r.to_list.push_back(r.to.pointer() + done);
        r.from_list.push_back(r.from.pointer() + done);
        r.operations.push_back({operand(r.from, done), operand(r.to, done), {size, r.height, r.depth}, 1, 0});
        done += size * r.height * r.depth;
    }
}

} // namespace workload
