// SPDX-License-Identifier: Apache-2.0
// One set of calls. Compiled several times: by each compiler, with our prototypes and (ABI_REAL) with CUDA's.
#ifdef ABI_REAL
// Makes the headers declare old versions and per-thread variants under their own names, and undefine the macros that
// map one to the other.
#define __CUDA_API_VERSION_INTERNAL // NOLINT(bugprone-reserved-identifier)
#include <cuda.h>
#include <cuda_runtime_api.h>
#else
#include "types.h"
#endif

#include "calls.hpp"

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

// Symbols that the headers do not declare are found here; those that they do are overloads of these. No call is ever
// made to either.
#ifdef ABI_REAL
namespace absent {
struct Absent;
#define SIGNATURE(result, symbol, ...)                                                                                 \
    Absent* symbol();                                                                                                  \
    Absent* symbol##_ptsz();
#include "signatures.def"
#undef SIGNATURE
} // namespace absent
using namespace absent;
#endif

// Without a name: each compiler's code has to stay its own.
namespace {

using abi::Call;
using abi::Passed;

// A value that the compiler knows nothing about. It is 64 bits wide when a 32-bit argument is made of it, which leaves
// the upper half of the argument's register or slot dirty, as the psABI permits.
inline __attribute__((always_inline)) uint64_t opaque(uint64_t value)
{
    asm volatile("" : "+r"(value));
    return value;
}

template<class T>
constexpr bool narrow = sizeof(T) == 4; // NOLINT(bugprone-sizeof-expression): of a pointer, too

template<class T>
T make(uint64_t value)
{
    if constexpr (std::is_pointer_v<T>)
        return std::bit_cast<T>(value);
    else
        return static_cast<T>(value);
}

// Stores a distinct value for this meaning into a field of a structure.
template<class T>
void put(T& field, argument which, size_t element, Call& call)
{
    uint64_t value = abi::distinct(20 + element * ARGUMENTS + which);
    field = make<T>(value);
    call.fields[element].push_back({which, narrow<T> ? static_cast<uint32_t>(value) : value});
}

// The structures that describe launches, whatever version of CUDA they are from, are known by their fields.
template<class T>
concept DriverLaunch = requires(T launch)
{
    launch.gridDimX;
};

template<class T>
concept RuntimeLaunch = requires(T launch)
{
    launch.gridDim;
};

template<class T>
void fill(T& launch, size_t element, Call& call)
{
    auto store = [&](auto& field, int which) { put(field, static_cast<argument>(which), element, call); };
    auto store_dimensions = [&](auto& field, int x) {
        store(field.x, x);
        store(field.y, x + 1);
        store(field.z, x + 2);
    };
    if constexpr (DriverLaunch<T>) {
        store(launch.gridDimX, ARG_GRID_X);
        store(launch.gridDimY, ARG_GRID_Y);
        store(launch.gridDimZ, ARG_GRID_Z);
        store(launch.blockDimX, ARG_BLOCK_X);
        store(launch.blockDimY, ARG_BLOCK_Y);
        store(launch.blockDimZ, ARG_BLOCK_Z);
        store(launch.sharedMemBytes, ARG_SMEM);
        store(launch.hStream, ARG_STREAM);
    } else {
        store_dimensions(launch.gridDim, ARG_GRID_X);
        store_dimensions(launch.blockDim, ARG_BLOCK_X);
        store(launch.stream, ARG_STREAM);
    }
    if constexpr (requires { launch.dynamicSmemBytes; })
        store(launch.dynamicSmemBytes, ARG_SMEM);
    if constexpr (requires { launch.sharedMem; })
        store(launch.sharedMem, ARG_SMEM);
    if constexpr (requires { launch.function; })
        store(launch.function, ARG_FUNC);
    if constexpr (requires { launch.func; })
        store(launch.func, ARG_FUNC);
}

template<class T>
using Target = std::remove_cv_t<std::remove_pointer_t<T>>;

// Whether T points to launches. Most pointers lead to incomplete types, and some to functions or void.
template<class T>
constexpr bool points_to_launches = [] {
    if constexpr (std::is_pointer_v<T> && requires { sizeof(Target<T>); })
        return DriverLaunch<Target<T>> || RuntimeLaunch<Target<T>>;
    return false;
}();

template<class T>
void prepare(Call& call)
{
    if constexpr (points_to_launches<T>) {
        static_assert(abi::elements * sizeof(Target<T>) <= sizeof(call.memory));
        memset(call.memory, 0xA5, sizeof(call.memory)); // padding and unused fields are not zero
        for (size_t i = 0; i < abi::elements; i++)
            fill(reinterpret_cast<Target<T>*>(call.memory)[i], i, call);
        call.parameters.push_back(Passed::launches);
    } else if constexpr (std::is_class_v<T>) {
        static_assert(std::is_same_v<T, struct dim3>);
        call.parameters.push_back(Passed::dimensions);
    } else {
        static_assert(std::is_scalar_v<T>);
        call.parameters.push_back(narrow<T> ? Passed::word32 : Passed::word64);
    }
}

template<class T>
inline __attribute__((always_inline)) T argument_value(size_t number, Call& call)
{
    if constexpr (points_to_launches<T>) {
        return reinterpret_cast<T>(call.memory);
    } else if constexpr (std::is_class_v<T>) {
        uint64_t xy = opaque(abi::distinct(number));
        T dimensions;
        dimensions.x = static_cast<unsigned>(xy);
        dimensions.y = static_cast<unsigned>(xy >> 32);
        dimensions.z = static_cast<unsigned>(opaque(abi::distinct(Call::z_of(number))));
        return dimensions;
    } else {
        return make<T>(opaque(abi::distinct(number)));
    }
}

// The call: abi_capture is taken for a function of this very type.
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

// Only chosen where there is no other overload of the symbol: 0 is an int first.
constexpr Maker maker(absent::Absent* (*)(), long)
{
    return nullptr;
}

#define SIGNATURE(result, symbol, ...)                                                                                 \
    {#symbol, #__VA_ARGS__, maker(&symbol, 0)}, {#symbol "_ptsz", #__VA_ARGS__, maker(&symbol##_ptsz, 0)},
#else
template<class R, class... A>
constexpr Maker maker(R (*)(A...))
{
    return &make_call<R, A...>;
}

#define SIGNATURE(result, symbol, ...) {#symbol, #__VA_ARGS__, maker(static_cast<result (*)(__VA_ARGS__)>(nullptr))},
#endif

constexpr abi::Signature signatures[] = {
#include "signatures.def"
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
