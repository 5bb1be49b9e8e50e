// SPDX-License-Identifier: Apache-2.0
// high DRIVER GO: in a thread with its stack above 2^48, makes 100 launches inside five nested calls of down(), and 100
// launches from generated code above 2^48. Prints "high". If this machine has no such addresses, prints "low" and waits
// without launches.
#include "launch.hpp"

#include <cstdint>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>

static stacks::Launch launch;
static const char* go;
static char* memory; // a page of code, then the stack
constexpr size_t page = 65536, stack = 1 << 20;

extern "C" [[gnu::noinline]] int leaf()
{
    return launch(memory, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) + 1;
}

extern "C" [[gnu::noinline]] int down(int frames)
{
    return (frames > 1 ? down(frames - 1) : leaf()) + 1;
}

extern "C" void* calls(void*)
{
#ifdef __aarch64__
    // stp x29, x30, [sp, -16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], 16; ret
    static const uint32_t code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#else
    // push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#endif
    memcpy(memory, code, sizeof code);
    __builtin___clear_cache(memory, memory + sizeof code);
    const auto made = reinterpret_cast<stacks::Launch>(memory);
    stacks::wait_for(go);
    int sum = 0;
    for (int i = 0; i < 100; i++)
        sum += down(5) + made(reinterpret_cast<void*>(launch), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    stacks::stay();
    return sum ? memory : nullptr;
}

int main(int, char** argv)
{
    launch = stacks::launch_of(argv[1]);
    go = argv[2];
    // The kernel returns an address above 2^48 only if the hint is above 2^48.
    memory = static_cast<char*>(mmap(reinterpret_cast<void*>(1UL << 50), page + stack,
                                     PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const bool high = reinterpret_cast<uintptr_t>(memory) >> 48 != 0;
    puts(high ? "high" : "low");
    fflush(stdout);
    if (!high)
        pause();
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, memory + page, stack) ||
        pthread_create(&thread, &attributes, calls, nullptr))
        return 1;
    pthread_join(thread, nullptr);
}
