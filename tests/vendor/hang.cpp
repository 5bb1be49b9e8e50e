// SPDX-License-Identifier: Apache-2.0
// Lets a thread hang inside a library's function: it single-steps to the library's first call or return instruction,
// and calls hang() instead. So the stack contains real frames of the library. caller.py loads this; x86-64 only.
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <dlfcn.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>

namespace {

std::atomic<bool> is_hanging{false};
const void* library_base = nullptr;
bool is_to_spin = false;

void hang()
{
    is_hanging = true;
    while (!is_to_spin)
        pause();
    for (volatile unsigned turns = 0;;)
        turns = turns + 1;
}

// SIGTRAP handler, called after each instruction.
void each_step(int, siginfo_t*, void* context)
{
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const auto* const at = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
    constexpr uint8_t call = 0xe8, ret = 0xc3;
    constexpr long within = 1, trap_flag = 0x100;
    Dl_info where;
    if ((*at != call && *at != ret) || !dladdr(at, &where) || where.dli_fbase != library_base)
        return;
    registers[REG_RSP] -= sizeof(uint64_t);
    *reinterpret_cast<long*>(registers[REG_RSP]) = registers[REG_RIP] + within;
    registers[REG_RIP] = reinterpret_cast<long>(&hang);
    registers[REG_EFL] &= ~trap_flag;
}

} // namespace

// Returns once a new thread hangs in this function, which is called with pointers to zeros. Returns -1 if no library
// has the function.
extern "C" int hang_in(const void* function, bool spinning)
{
    static std::array<uint64_t, 4096> zeros;
    Dl_info where;
    if (!dladdr(function, &where))
        return -1;
    library_base = where.dli_fbase;
    is_to_spin = spinning;
    struct sigaction action {};
    action.sa_sigaction = each_step;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, nullptr);
    std::thread([function] {
        using Function = int (*)(void*, void*, void*, void*, void*, void*);
        asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
        void* z = zeros.data();
        reinterpret_cast<Function>(const_cast<void*>(function))(z, z, z, z, z, z);
        _exit(1); // the function must not return
    }).detach();
    while (!is_hanging)
        usleep(1000);
    is_hanging = false;
    return 0;
}
