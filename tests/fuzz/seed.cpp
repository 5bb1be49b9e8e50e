// SPDX-License-Identifier: Apache-2.0
// Seed binary for the fuzzer: a minimal program that registers kernels as nvcc's output does. It is compiled in several
// forms. With RUNTIME it also defines the runtime's functions, like a program that links the runtime statically.
extern "C" {

struct Handle;
#ifdef RUNTIME
#define KEPT __attribute__((noipa, used)) // keeps the compiler from removing unused arguments
volatile const void* last;
KEPT void __cudaRegisterFunction(Handle*, const char* stub, char*, const char*, int, void*, void*, void*, void*, int*)
{
    last = stub;
}
KEPT int __cudaGetKernel(void** kernel, const void* stub)
{
    last = *kernel;
    *kernel = const_cast<void*>(stub);
    return 0;
}
#else
void __cudaRegisterFunction(Handle*, const char*, char*, const char*, int, void*, void*, void*, void*, int*);
int __cudaGetKernel(void**, const void*);
#endif

struct Wrapper {
    unsigned magic, version;
    const void *data, *unused;
};
[[gnu::section(".nvFatBinSegment"), gnu::used]] Wrapper wrapper = {0x466243b1, 1, nullptr, nullptr};
}

#define STUB(name)                                                                                                     \
    static void* handle_of_##name;                                                                                     \
    [[gnu::noinline]] static void name()                                                                               \
    {                                                                                                                  \
        __cudaGetKernel(&handle_of_##name, reinterpret_cast<const void*>(name));                                       \
        asm volatile("" ::: "memory");                                                                                 \
    }
STUB(first)
STUB(second)
STUB(third)

[[gnu::visibility("default"), gnu::noinline]] void exported()
{
    asm volatile("" ::: "memory");
}

[[gnu::constructor]] static void register_all()
{
    auto* const binary = reinterpret_cast<Handle*>(&wrapper);
#define REGISTER(stub, name)                                                                                           \
    __cudaRegisterFunction(binary, reinterpret_cast<const char*>(stub), const_cast<char*>(name), name, -1, nullptr,    \
                           nullptr, nullptr, nullptr, nullptr)
    REGISTER(first, "_Z5firstPf");
    REGISTER(second, "_ZN2at6secondIfEEvT_");
    REGISTER(third, "third");
    REGISTER(exported, "_Z8exportedv");
}

extern "C" void launch_all()
{
    first();
    second();
    third();
}
