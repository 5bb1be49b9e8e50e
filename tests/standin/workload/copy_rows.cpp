// SPDX-License-Identifier: Apache-2.0
// Table of all functions that copy, fill or prefetch. The stream is passed as the last argument, so functions that take
// no stream ignore it.
#include "calls.hpp"
#include "copy.hpp"
#include "kernels.hpp"
#include "symbols.hpp"

#include <algorithm>

namespace workload {
namespace {

using R = const Request&;
namespace by { // callers

constexpr void* no_context = nullptr;
constexpr size_t one_attribute = 1;
standin::CopyAttributes attributes[1] = {{1, {}, {}, 0}};
size_t first[1] = {0};
size_t failed_index;
constexpr unsigned pattern = 0x5a;

#define BY(name, ...)                                                                                                  \
    int name(void* f, R r)                                                                                             \
    {                                                                                                                  \
        return call_symbol(f, __VA_ARGS__);                                                                            \
    }
BY(linear, r.to.pointer(), r.from.pointer(), r.width, r.stream)
BY(to_array, r.to.pointer(), r.to.offset, r.from.pointer(), r.width, r.stream)
BY(from_array, r.to.pointer(), r.from.pointer(), r.from.offset, r.width, r.stream)
BY(array_to_array, r.to.pointer(), r.to.offset, r.from.pointer(), r.from.offset, r.width)
BY(peer, r.to.pointer(), no_context, r.from.pointer(), no_context, r.width, r.stream)
BY(plane, &r.plane, r.stream)
BY(volume, &r.volume, r.stream)
BY(batch, r.to_list.data(), r.from_list.data(), r.sizes.data(), r.sizes.size(), attributes, first, one_attribute,
   &failed_index, r.stream)
BY(batch_v2, r.to_list.data(), r.from_list.data(), r.sizes.data(), r.sizes.size(), attributes, first, one_attribute,
   r.stream)
BY(volumes, r.sizes.size(), r.operations.data(), &failed_index, 0ull, r.stream)
BY(volumes_v2, r.sizes.size(), r.operations.data(), 0ull, r.stream)
BY(set, r.to.pointer(), pattern, r.width, r.stream)
// A pitch that is large enough for any element size.
BY(set_plane, r.to.pointer(), 4 * r.width, pattern, r.width, r.height, r.stream)
BY(prefetch, r.to.pointer(), r.width, r.location.id, r.stream)
BY(prefetch_v2, r.to.pointer(), r.width, r.location, 0u, r.stream)
BY(prefetch_batch, r.to_list.data(), r.sizes.data(), r.sizes.size(), &r.location, first, one_attribute, 0ull, r.stream)
BY(linear_kind, r.to.pointer(), r.from.pointer(), r.width, r.kind, r.stream)
BY(peer_devices, r.to.pointer(), 1, r.from.pointer(), 0, r.width, r.stream)
BY(to_symbol, r.to.address, r.from.pointer(), r.width, r.to.offset, r.kind, r.stream)
BY(from_symbol, r.to.pointer(), r.from.address, r.width, r.from.offset, r.kind, r.stream)
BY(plane_kind, r.to.pointer(), r.plane.destination.pitch, r.from.pointer(), r.plane.source.pitch, r.width, r.height,
   r.kind, r.stream)
BY(plane_to_array, r.to.pointer(), r.to.offset, size_t(0), r.from.pointer(), r.plane.source.pitch, r.width, r.height,
   r.kind, r.stream)
BY(plane_from_array, r.to.pointer(), r.plane.destination.pitch, r.from.pointer(), r.from.offset, size_t(0), r.width,
   r.height, r.kind, r.stream)
BY(plane_between_arrays, r.to.pointer(), r.to.offset, size_t(0), r.from.pointer(), r.from.offset, size_t(0), r.width,
   r.height, r.kind)
BY(kind_to_array, r.to.pointer(), r.to.offset, size_t(0), r.from.pointer(), r.width, r.kind, r.stream)
BY(kind_from_array, r.to.pointer(), r.from.pointer(), r.from.offset, size_t(0), r.width, r.kind, r.stream)
BY(kind_between_arrays, r.to.pointer(), r.to.offset, size_t(0), r.from.pointer(), r.from.offset, size_t(0), r.width,
   r.kind)
BY(runtime_volume, &r.runtime_volume, r.stream)
BY(runtime_peer_volume, &r.runtime_peer_volume, r.stream)
BY(set_volume, r.runtime_volume.destination.pointer, static_cast<int>(pattern), r.runtime_volume.extent, r.stream)

} // namespace by

// Sides: host, device, array, device symbol; X: determined by the step's options.
constexpr Side H = Side::host, D = Side::device, A = Side::array, S = Side::symbol, X = Side::unknown;
using enum Form;
using enum DirectionFrom;

const CopyRow rows[] = {
    // from, to
    {"cuMemcpy", linear, memory, X, X, by::linear},
    {"cuMemcpyAsync", linear, memory, X, X, by::linear},
    {"cuMemcpyHtoD_v2", linear, name, H, D, by::linear},
    {"cuMemcpyHtoDAsync_v2", linear, name, H, D, by::linear},
    {"cuMemcpyDtoH_v2", linear, name, D, H, by::linear},
    {"cuMemcpyDtoHAsync_v2", linear, name, D, H, by::linear},
    {"cuMemcpyDtoD_v2", linear, name, D, D, by::linear},
    {"cuMemcpyDtoDAsync_v2", linear, name, D, D, by::linear},
    {"cuMemcpyHtoA_v2", linear, name, H, A, by::to_array},
    {"cuMemcpyHtoAAsync_v2", linear, name, H, A, by::to_array},
    {"cuMemcpyAtoH_v2", linear, name, A, H, by::from_array},
    {"cuMemcpyAtoHAsync_v2", linear, name, A, H, by::from_array},
    {"cuMemcpyDtoA_v2", linear, name, D, A, by::to_array},
    {"cuMemcpyAtoD_v2", linear, name, A, D, by::from_array},
    {"cuMemcpyAtoA_v2", linear, name, A, A, by::array_to_array},
    {"cuMemcpyPeer", linear, peer, D, D, by::peer},
    {"cuMemcpyPeerAsync", linear, peer, D, D, by::peer},
    {"cuMemcpy2D_v2", plane, types, X, X, by::plane},
    {"cuMemcpy2DAsync_v2", plane, types, X, X, by::plane},
    {"cuMemcpy2DUnaligned_v2", plane, types, X, X, by::plane},
    {"cuMemcpy3D_v2", volume, types, X, X, by::volume},
    {"cuMemcpy3DAsync_v2", volume, types, X, X, by::volume},
    {"cuMemcpy3DPeer", volume, peer, D, D, by::volume},
    {"cuMemcpy3DPeerAsync", volume, peer, D, D, by::volume},
    {"cuMemcpyBatchAsync", batch, memory, X, X, by::batch},
    {"cuMemcpyBatchAsync_v2", batch, memory, X, X, by::batch_v2},
    {"cuMemcpy3DBatchAsync", volumes, memory, X, X, by::volumes},
    {"cuMemcpy3DBatchAsync_v2", volumes, memory, X, X, by::volumes_v2},
    {"cuMemsetD8_v2", linear, set, X, D, by::set},
    {"cuMemsetD8Async", linear, set, X, D, by::set},
    {"cuMemsetD16_v2", linear, set, X, D, by::set, "", 2},
    {"cuMemsetD16Async", linear, set, X, D, by::set, "", 2},
    {"cuMemsetD32_v2", linear, set, X, D, by::set, "", 4},
    {"cuMemsetD32Async", linear, set, X, D, by::set, "", 4},
    {"cuMemsetD2D8_v2", plane, set, X, D, by::set_plane},
    {"cuMemsetD2D8Async", plane, set, X, D, by::set_plane},
    {"cuMemsetD2D16_v2", plane, set, X, D, by::set_plane, "", 2},
    {"cuMemsetD2D16Async", plane, set, X, D, by::set_plane, "", 2},
    {"cuMemsetD2D32_v2", plane, set, X, D, by::set_plane, "", 4},
    {"cuMemsetD2D32Async", plane, set, X, D, by::set_plane, "", 4},
    {"cuMemPrefetchAsync", linear, prefetch, X, D, by::prefetch},
    {"cuMemPrefetchAsync_v2", linear, prefetch, X, D, by::prefetch_v2},
    {"cuMemPrefetchBatchAsync", batch, prefetch, X, D, by::prefetch_batch},
    {"cudaMemcpy", linear, kind, X, X, by::linear_kind, "cuMemcpy%"},
    {"cudaMemcpyAsync", linear, kind, X, X, by::linear_kind, "cuMemcpy%Async"},
    {"cudaMemcpyToSymbol", linear, kind, X, S, by::to_symbol, "cuMemcpy%"},
    {"cudaMemcpyToSymbolAsync", linear, kind, X, S, by::to_symbol, "cuMemcpy%Async"},
    {"cudaMemcpyFromSymbol", linear, kind, S, X, by::from_symbol, "cuMemcpy%"},
    {"cudaMemcpyFromSymbolAsync", linear, kind, S, X, by::from_symbol, "cuMemcpy%Async"},
    {"cudaMemcpyPeer", linear, peer, D, D, by::peer_devices, "cuMemcpyPeer"},
    {"cudaMemcpyPeerAsync", linear, peer, D, D, by::peer_devices, "cuMemcpyPeerAsync"},
    {"cudaMemcpy2D", plane, kind, X, X, by::plane_kind, "cuMemcpy2DUnaligned_v2"},
    {"cudaMemcpy2DAsync", plane, kind, X, X, by::plane_kind, "cuMemcpy2DAsync_v2"},
    {"cudaMemcpy2DToArray", plane, kind, X, A, by::plane_to_array, "cuMemcpy2DUnaligned_v2"},
    {"cudaMemcpy2DToArrayAsync", plane, kind, X, A, by::plane_to_array, "cuMemcpy2DAsync_v2"},
    {"cudaMemcpy2DFromArray", plane, kind, A, X, by::plane_from_array, "cuMemcpy2DUnaligned_v2"},
    {"cudaMemcpy2DFromArrayAsync", plane, kind, A, X, by::plane_from_array, "cuMemcpy2DAsync_v2"},
    {"cudaMemcpy2DArrayToArray", plane, kind, A, A, by::plane_between_arrays, "cuMemcpy2DUnaligned_v2"},
    {"cudaMemcpyToArray", linear, kind, X, A, by::kind_to_array, "cuMemcpy2DUnaligned_v2"},
    {"cudaMemcpyToArrayAsync", linear, kind, X, A, by::kind_to_array, "cuMemcpy2DAsync_v2"},
    {"cudaMemcpyFromArray", linear, kind, A, X, by::kind_from_array, "cuMemcpy2DUnaligned_v2"},
    {"cudaMemcpyFromArrayAsync", linear, kind, A, X, by::kind_from_array, "cuMemcpy2DAsync_v2"},
    {"cudaMemcpyArrayToArray", linear, kind, A, A, by::kind_between_arrays, "cuMemcpy2DUnaligned_v2"},
    {"cudaMemcpy3D", volume, kind, X, X, by::runtime_volume, "cuMemcpy3D_v2"},
    {"cudaMemcpy3DAsync", volume, kind, X, X, by::runtime_volume, "cuMemcpy3DAsync_v2"},
    {"cudaMemcpy3DPeer", volume, peer, D, D, by::runtime_peer_volume, "cuMemcpy3DPeer"},
    {"cudaMemcpy3DPeerAsync", volume, peer, D, D, by::runtime_peer_volume, "cuMemcpy3DPeerAsync"},
    {"cudaMemcpyBatchAsync", batch, memory, X, X, by::batch, "cuMemcpyBatchAsync", 1, 12},
    {"cudaMemcpy3DBatchAsync", volumes, memory, X, X, by::volumes, "cuMemcpy3DBatchAsync", 1, 12},
    {"cudaMemcpyBatchAsync", batch, memory, X, X, by::batch_v2, "cuMemcpyBatchAsync_v2", 1, 13},
    {"cudaMemcpy3DBatchAsync", volumes, memory, X, X, by::volumes_v2, "cuMemcpy3DBatchAsync_v2", 1, 13},
    {"cudaMemset", linear, set, X, D, by::set, "cuMemsetD8_v2"},
    {"cudaMemsetAsync", linear, set, X, D, by::set, "cuMemsetD8Async"},
    {"cudaMemset2D", plane, set, X, D, by::set_plane, "cuMemsetD2D8_v2"},
    {"cudaMemset2DAsync", plane, set, X, D, by::set_plane, "cuMemsetD2D8Async"},
    {"cudaMemset3D", volume, set, X, D, by::set_volume, "cuMemsetD2D8_v2"},
    {"cudaMemset3DAsync", volume, set, X, D, by::set_volume, "cuMemsetD2D8Async"},
    {"cudaMemPrefetchAsync", linear, prefetch, X, D, by::prefetch, "cuMemPrefetchAsync", 1, 12},
    {"cudaMemPrefetchAsync", linear, prefetch, X, D, by::prefetch_v2, "cuMemPrefetchAsync_v2", 1, 13},
    {"cudaMemPrefetchBatchAsync", batch, prefetch, X, D, by::prefetch_batch, "cuMemPrefetchBatchAsync"},
};

} // namespace

const CopyRow* find_copy_row(const std::string& function)
{
    auto row = std::ranges::find_if(rows, [&](const CopyRow& r) {
        return without_suffix(function) == r.name && (!r.runtime || r.runtime == runtime_major);
    });
    return row == std::end(rows) ? nullptr : row;
}

} // namespace workload
