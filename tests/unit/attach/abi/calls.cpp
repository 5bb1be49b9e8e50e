// SPDX-License-Identifier: Apache-2.0
// A set of calls. Compiled several times: by each compiler, with the prototypes of signatures.def, and with those of
// CUDA's headers (ABI_REAL).
#ifdef ABI_REAL
// Makes the headers declare old versions and per-thread variants under their own names, without macros that map one
// name to another.
#define __CUDA_API_VERSION_INTERNAL // NOLINT(bugprone-reserved-identifier)
#include <cuda.h>
#include <cuda_runtime_api.h>
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" // deprecated functions are probed, too
#else
#include "types_hip.h"
#endif

#include "calls.hpp"

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

// Fallback declarations for symbols that the headers lack. If a header declares a symbol, its declaration is an
// overload of the fallback. The fallbacks are never called.
#ifdef ABI_REAL
namespace absent {
struct Absent;
#define SIGNATURE(result, symbol, ...)                                                                                 \
    Absent* symbol();                                                                                                  \
    Absent* symbol##_ptsz();                                                                                           \
    Absent* symbol##_ptds();
#define SIGNATURE_OF(runtimes, result, symbol, ...) SIGNATURE(result, symbol, __VA_ARGS__)
#include "signatures.def"
#include "signatures_hip.def"
#undef SIGNATURE
#undef SIGNATURE_OF
} // namespace absent
using namespace absent;
#endif

// In an unnamed namespace, so that the linker does not merge the code of different compilers.
namespace {

using abi::Call;
using abi::Passed;
using gpusnoop::any_runtime;
using gpusnoop::cudart11;
using gpusnoop::cudart12;
using gpusnoop::cudart13;
using gpusnoop::hip5;
using gpusnoop::hip52;
using gpusnoop::hip6;

constexpr uint8_t before6 = hip52 | hip5, after52 = hip5 | hip6;

// A value that is opaque to the compiler. It has 64 bits even for a 32-bit argument, which leaves the upper half of the
// argument's register or slot dirty, as the psABI permits.
inline __attribute__((always_inline)) uint64_t opaque(uint64_t value)
{
    asm volatile("" : "+r"(value));
    return value;
}

template<class T>
T make(uint64_t value)
{
    if constexpr (std::is_pointer_v<T>)
        return std::bit_cast<T>(value);
    else
        return static_cast<T>(value);
}

// Concepts that recognize structures by their fields, so that they match every version of CUDA.
template<class T>
concept DriverLaunch = sizeof(T::gridDimX) > 0 && sizeof(T::hStream) > 0;

template<class T>
concept RuntimeLaunch = sizeof(T::gridDim.x) > 0 && sizeof(T::stream) > 0;

template<class T>
concept DriverCopy = sizeof(T::WidthInBytes) > 0;

template<class T>
concept RuntimeCopy = sizeof(T::srcPtr.ptr) > 0;

template<class T>
concept CopyOfList = sizeof(T::src.op.ptr.ptr) > 0;

template<class T>
concept PitchedMemory = sizeof(T::xsize) > 0;

template<class T>
concept Extent = sizeof(T::depth) > 0;

template<class T>
concept Physical = sizeof(T::location.type) > 0;

template<class T>
concept ArrayDescriptor = sizeof(T::NumChannels) > 0;

template<class T>
concept ExternalMemory = sizeof(T::handle.fd) > 0;

template<class T>
concept AllocationNode = sizeof(T::bytesize) > 0;

template<class T>
concept AnyNode = sizeof(T::graph.graph) > 0;

template<class T>
concept MappedBuffer = sizeof(T::offset) > 0 && sizeof(T::size) > 0;

// Calls found(field, argument) for each field that the probe table reads.
void describe(const DriverLaunch auto& launch, auto found)
{
    found(launch.gridDimX, ARG_GRID_X);
    found(launch.gridDimY, ARG_GRID_Y);
    found(launch.gridDimZ, ARG_GRID_Z);
    found(launch.blockDimX, ARG_BLOCK_X);
    found(launch.blockDimY, ARG_BLOCK_Y);
    found(launch.blockDimZ, ARG_BLOCK_Z);
    found(launch.sharedMemBytes, ARG_SMEM);
    found(launch.hStream, ARG_STREAM);
    if constexpr (requires { launch.function; })
        found(launch.function, ARG_FUNC);
}

void describe(const RuntimeLaunch auto& launch, auto found)
{
    found(launch.gridDim.x, ARG_GRID_X);
    found(launch.gridDim.y, ARG_GRID_Y);
    found(launch.gridDim.z, ARG_GRID_Z);
    found(launch.blockDim.x, ARG_BLOCK_X);
    found(launch.blockDim.y, ARG_BLOCK_Y);
    found(launch.blockDim.z, ARG_BLOCK_Z);
    found(launch.stream, ARG_STREAM);
    if constexpr (requires { launch.dynamicSmemBytes; }) {
        found(launch.dynamicSmemBytes, ARG_SMEM);
    } else {
        found(launch.sharedMem, ARG_SMEM);
        found(launch.func, ARG_FUNC);
    }
}

void describe(const Extent auto& extent, auto found)
{
    found(extent.width, ARG_BYTES);
    found(extent.height, ARG_HEIGHT);
    found(extent.depth, ARG_DEPTH);
}

// If the structure is passed by value, its field `ptr` is the destination of the call. If the structure is passed by
// pointer, the call stores its results in the structure's fields.
void describe(const PitchedMemory auto& memory, auto found, bool by_pointer = false)
{
    found(memory.ptr, by_pointer ? ARG_OUT : ARG_DESTINATION);
    if (by_pointer)
        found(memory.pitch, ARG_PITCH);
}

void describe(const DriverCopy auto& copy, auto found)
{
    found(copy.srcMemoryType, ARG_SOURCE_TYPE);
    found(copy.srcHost, ARG_SOURCE_HOST);
    found(copy.srcDevice, ARG_SOURCE);
    found(copy.dstMemoryType, ARG_DESTINATION_TYPE);
    found(copy.dstHost, ARG_DESTINATION_HOST);
    found(copy.dstDevice, ARG_DESTINATION);
    found(copy.WidthInBytes, ARG_BYTES);
    found(copy.Height, ARG_HEIGHT);
    if constexpr (requires { copy.Depth; })
        found(copy.Depth, ARG_DEPTH);
}

void describe(const RuntimeCopy auto& copy, auto found)
{
    found(copy.srcArray, ARG_SOURCE_ARRAY);
    found(copy.srcPtr.ptr, ARG_SOURCE);
    found(copy.dstArray, ARG_DESTINATION_ARRAY);
    found(copy.dstPtr.ptr, ARG_DESTINATION);
    describe(copy.extent, found);
    if constexpr (requires { copy.kind; })
        found(copy.kind, ARG_DIRECTION);
}

void describe(const CopyOfList auto& copy, auto found)
{
    found(copy.src.type, ARG_SOURCE_TYPE);
    found(copy.src.op.ptr.ptr, ARG_SOURCE);
    found(copy.dst.type, ARG_DESTINATION_TYPE);
    found(copy.dst.op.ptr.ptr, ARG_DESTINATION);
    describe(copy.extent, found);
}

void describe(const Physical auto& physical, auto found)
{
    found(physical.location.type, ARG_LOCATION);
    found(physical.location.id, ARG_DEVICE);
}

void describe(const ArrayDescriptor auto& array, auto found)
{
    found(array.Width, ARG_BYTES);
    found(array.Height, ARG_HEIGHT);
    if constexpr (requires { array.Depth; })
        found(array.Depth, ARG_DEPTH);
    found(array.Format, ARG_FORMAT);
    found(array.NumChannels, ARG_CHANNELS);
}

void describe(const ExternalMemory auto& memory, auto found)
{
    found(memory.size, ARG_BYTES);
}

void describe(const AnyNode auto& node, auto found)
{
    found(node.type, ARG_NODE_TYPE);
    found(node.graph.graph, ARG_CHILD);
}

void describe(const AllocationNode auto& node, auto found)
{
    found(node.bytesize, ARG_BYTES);
    found(node.dptr, ARG_OUT);
}

void describe(const MappedBuffer auto& buffer, auto found)
{
    found(buffer.size, ARG_BYTES);
}

// Records the values of a structure's fields, or the offsets of fields that the call stores results in.
template<class T>
void store_fields(const T& structure, size_t element, Call& call, bool by_pointer)
{
    auto store = [&](const auto& field, argument which) {
        uint64_t value = 0;
        if (abi::is_result(which))
            value = static_cast<uint64_t>(reinterpret_cast<const std::byte*>(&field) - call.memory);
        else
            memcpy(&value, &field, sizeof(field));
        call.fields[element].push_back({which, value, call.parameters.size()});
    };
    if constexpr (PitchedMemory<T>)
        describe(structure, store, by_pointer);
    else
        describe(structure, store);
}

template<class T>
concept Described = requires(const T& structure)
{
    describe(structure, [](const auto&, argument) {});
};

template<class T>
using Target = std::remove_cv_t<std::remove_pointer_t<T>>;

template<class T>
constexpr bool points_to_described = std::is_pointer_v<T>&& Described<Target<T>>;

// Returns the value of a parameter that is not a pointer to structures.
template<class T>
inline __attribute__((always_inline)) T argument_value(size_t number)
{
    if constexpr (std::is_class_v<T>) {
        static_assert(std::is_trivially_copyable_v<T>);
        uint64_t words[(sizeof(T) + 7) / 8];
        for (size_t i = 0; i < std::size(words); i++)
            words[i] = opaque(Call::word(number, i));
        T structure;
        memcpy(static_cast<void*>(&structure), words, sizeof(T));
        return structure;
    } else {
        return make<T>(opaque(Call::word(number, 0)));
    }
}

template<class T>
inline __attribute__((always_inline)) T argument_value(size_t number, Call& call)
{
    if constexpr (points_to_described<T>)
        return reinterpret_cast<T>(call.memory);
    else
        return argument_value<T>(number);
}

template<class T>
void prepare(Call& call)
{
    if constexpr (points_to_described<T>) {
        static_assert(abi::elements * sizeof(Target<T>) <= sizeof(call.memory));
        for (size_t i = 0; i < sizeof(call.memory) / 8; i++) {
            uint64_t word = abi::distinct(10000 + i);
            memcpy(call.memory + i * 8, &word, sizeof(word));
        }
        for (size_t i = 0; i < abi::elements; i++)
            store_fields(reinterpret_cast<const Target<T>*>(call.memory)[i], i, call, true);
        call.parameters.push_back({Passed::pointer, sizeof(T)});
    } else if constexpr (Described<T>) {
        store_fields(argument_value<T>(call.parameters.size()), 0, call, false);
        call.parameters.push_back({Passed::fields, sizeof(T)});
    } else {
        static_assert(std::is_class_v<T> || std::is_scalar_v<T>);
        call.parameters.push_back({std::is_class_v<T> ? Passed::structure : Passed::scalar, sizeof(T)});
    }
}

// Makes the call, with abi_capture in place of the function.
template<class R, class... A>
void make_call(Call& call)
{
    (prepare<A>(call), ...);
    auto* called = reinterpret_cast<R (*)(A...)>(&abi_capture);
    auto pass = [&]<size_t... I>(std::index_sequence<I...>)
    {
        called(argument_value<A>(I, call)...);
    };
    pass(std::index_sequence_for<A...>());
    call.captured = abi_captured;
}

using Maker = void (*)(Call&);

#ifdef ABI_REAL
template<class... A>
constexpr Maker maker(CUresult (*)(A...), int)
{
    return &make_call<CUresult, A...>;
}

template<class... A>
constexpr Maker maker(cudaError_t (*)(A...), int)
{
    return &make_call<cudaError_t, A...>;
}

// Selected only if the symbol has no other overload: the second argument is 0, for which the compiler prefers int to
// long.
constexpr Maker maker(absent::Absent* (*)(), long)
{
    return nullptr;
}

constexpr uint8_t headers = CUDART_VERSION < 12000 ? cudart11 : CUDART_VERSION < 13000 ? cudart12 : cudart13;

#define SIGNATURE_OF(runtimes, result, symbol, ...)                                                                    \
    SIGNATURE_NAMED(runtimes, symbol, __VA_ARGS__)                                                                     \
    SIGNATURE_NAMED(runtimes, symbol##_ptsz, __VA_ARGS__) SIGNATURE_NAMED(runtimes, symbol##_ptds, __VA_ARGS__)
#define SIGNATURE_NAMED(runtimes, symbol, ...)                                                                         \
    {#symbol, runtimes, #__VA_ARGS__, (runtimes) == any_runtime || (runtimes)&headers ? maker(&symbol, 0) : nullptr},
#else
template<class R, class... A>
constexpr Maker maker(R (*)(A...))
{
    return &make_call<R, A...>;
}

#define SIGNATURE_OF(runtimes, result, symbol, ...)                                                                    \
    {#symbol, runtimes, #__VA_ARGS__, maker(static_cast<result (*)(__VA_ARGS__)>(nullptr))},
#endif
#define SIGNATURE(result, symbol, ...) SIGNATURE_OF(any_runtime, result, symbol, __VA_ARGS__)

constexpr abi::Signature signatures[] = {
#include "signatures.def"
#include "signatures_hip.def"
};

#ifdef __clang__
constexpr std::string_view compiler = "clang " __clang_version__;
#else
constexpr std::string_view compiler = "gcc " __VERSION__;
#endif

#ifdef ABI_REAL
constexpr int cuda = CUDA_VERSION;
#else
constexpr int cuda = 0;
#endif

const bool registered = [] {
    abi::call_sets().push_back({compiler, cuda, signatures});
    return true;
}();

} // namespace
