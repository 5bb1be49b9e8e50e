// SPDX-License-Identifier: Apache-2.0
// Host stubs and their registration, in the shape that nvcc 12 (RUNTIME_MAJOR 12) and nvcc 13 (RUNTIME_MAJOR 13)
// generate; RUNTIME_MAJOR 0 has no runtime and so no stubs. Names and sections are as in compiled CUDA programs,
// because tracers find kernels by them.
#include "kernels.hpp"

#include <cstdlib>

using standin::Dim3;

namespace workload {

const int runtime_major = RUNTIME_MAJOR;

} // namespace workload

#if RUNTIME_MAJOR

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* stub, char* function, const char* name, int threads, void*,
                            void*, void*, void*, int*);
unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared, void* stream);
int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, size_t* shared, void** stream);
int __cudaGetKernel(void** kernel, const void* stub);
int __cudaLaunchKernel(void* kernel, Dim3 grid, Dim3 block, void** arguments, size_t shared, void* stream);
int cudaLaunchKernel(const void* stub, Dim3 grid, Dim3 block, void** arguments, size_t shared, void* stream);
int cudaGetLastError();
}

// What nvcc's __cudaLaunch(stub) expands to. 13 asks for a handle once and launches through it.
#if RUNTIME_MAJOR >= 13
#define LAUNCH(stub)                                                                                                   \
    static void* handle = nullptr;                                                                                     \
    [[maybe_unused]] static volatile bool known = __cudaGetKernel(&handle, reinterpret_cast<const void*>(stub)) == 0;  \
    Dim3 grid, block;                                                                                                  \
    size_t shared;                                                                                                     \
    void* stream;                                                                                                      \
    if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream))                                                   \
        return;                                                                                                        \
    (void)__cudaLaunchKernel(handle, grid, block, arguments, shared, stream)
#else
#define LAUNCH(stub)                                                                                                   \
    Dim3 grid, block;                                                                                                  \
    size_t shared;                                                                                                     \
    void* stream;                                                                                                      \
    if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream))                                                   \
        return;                                                                                                        \
    (void)cudaLaunchKernel(reinterpret_cast<const void*>(stub), grid, block, arguments, shared, stream)
#endif

#define NOINLINE [[gnu::noinline]]

// __global__ void vecadd(const float*, const float*, float*, int)
void vecadd(const float*, const float*, float*, int);
NOINLINE static void __device_stub__Z6vecaddPKfS0_Pfi(const float* a, const float* b, float* c, int n)
{
    void* arguments[] = {&a, &b, &c, &n};
    LAUNCH(vecadd);
}
void vecadd(const float* a, const float* b, float* c, int n)
{
    __device_stub__Z6vecaddPKfS0_Pfi(a, b, c, n);
}

// static __global__ void saxpy(float*, const float*, float): its symbol is local.
static void saxpy(float*, const float*, float);
NOINLINE static void __device_stub__Z5saxpyPfPKff(float* y, const float* x, float a)
{
    void* arguments[] = {&y, &x, &a};
    LAUNCH(saxpy);
}
NOINLINE static void saxpy(float* y, const float* x, float a)
{
    __device_stub__Z5saxpyPfPKff(y, x, a);
}

// template <class T> __global__ void reduce(const T*, T*, int): weak, mangled with its argument.
template<class T>
NOINLINE void reduce(const T* in, T* out, int n)
{
    void* arguments[] = {&in, &out, &n};
    LAUNCH(reduce<T>);
}

// The same in a namespace, with a value argument.
namespace detail {
template<int N, class F>
NOINLINE void apply(F f, float* out)
{
    void* arguments[] = {&f, &out};
    auto self = static_cast<void (*)(F, float*)>(apply<N, F>);
    LAUNCH(self);
}
} // namespace detail

// clang -x cuda: the stub itself is what is registered, under a name of its own.
NOINLINE void __device_stub__scale(float* data, int n)
{
    void* arguments[] = {&data, &n};
    LAUNCH(__device_stub__scale);
}

// The code that nvcc embeds: the header of a fat binary with nothing in it, and the wrapper that points to it.
[[gnu::section(".nv_fatbin"), gnu::used, gnu::aligned(8)]] static const unsigned char fatbin[64] = {
    0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 48};
[[gnu::section(".nvFatBinSegment"), gnu::used]] static struct {
    unsigned magic, version;
    const void* data;
    void* unused;
} wrapper = {0x466243b1, 1, fatbin, nullptr};
static void** binary;

static void unregister()
{
    __cudaUnregisterFatBinary(binary);
}

#define REGISTER(stub, name)                                                                                           \
    __cudaRegisterFunction(binary, reinterpret_cast<const char*>(stub), const_cast<char*>(name), name, -1, nullptr,    \
                           nullptr, nullptr, nullptr, nullptr)

[[gnu::constructor]] static void __sti____cudaRegisterAll()
{
    binary = __cudaRegisterFatBinary(&wrapper);
    REGISTER(vecadd, "_Z6vecaddPKfS0_Pfi");
    REGISTER(saxpy, "_Z5saxpyPfPKff");
    REGISTER(reduce<float>, "_Z6reduceIfEvPKT_PS0_i");
    REGISTER((detail::apply<4, float>), "_ZN6detail5applyILi4EfEEvT0_Pf");
    REGISTER(__device_stub__scale, "_Z5scalePfi");
    __cudaRegisterFatBinaryEnd(binary);
    atexit(unregister);
}

#define KERNEL(name, device_name, stub, call)                                                                          \
    {                                                                                                                  \
        name, device_name, reinterpret_cast<const void*>(stub), [] { call; }                                           \
    }
#else
#define KERNEL(name, device_name, stub, call)                                                                          \
    {                                                                                                                  \
        name, device_name, nullptr, nullptr                                                                            \
    }
#endif

namespace workload {

std::span<const Kernel> kernels()
{
    static const Kernel all[] = {
        KERNEL("vecadd", "_Z6vecaddPKfS0_Pfi", vecadd, vecadd(nullptr, nullptr, nullptr, 1)),
        KERNEL("saxpy", "_Z5saxpyPfPKff", saxpy, saxpy(nullptr, nullptr, 1)),
        KERNEL("reduce", "_Z6reduceIfEvPKT_PS0_i", reduce<float>, reduce<float>(nullptr, nullptr, 1)),
        KERNEL("apply", "_ZN6detail5applyILi4EfEEvT0_Pf", (detail::apply<4, float>),
               (detail::apply<4, float>(1, nullptr))),
        KERNEL("scale", "_Z5scalePfi", __device_stub__scale, __device_stub__scale(nullptr, 1)),
    };
    return all;
}

#if RUNTIME_MAJOR
int launch_configured(const Kernel& kernel, Dim3 grid, Dim3 block, size_t shared, void* stream)
{
    cudaGetLastError(); // of a call before it
    if (__cudaPushCallConfiguration(grid, block, shared, stream) == 0)
        kernel.start();
    return cudaGetLastError(); // the stub drops the launch's result
}
#else
int launch_configured(const Kernel&, Dim3, Dim3, size_t, void*)
{
    return standin::invalid_device_function;
}
#endif

} // namespace workload
