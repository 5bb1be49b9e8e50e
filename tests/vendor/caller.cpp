// SPDX-License-Identifier: Apache-2.0
// Test program that opens a CUDA library and calls its functions. It reads commands from stdin:
//
//     open LIBRARY             opens the library
//     calls COUNT              calls the first launching function COUNT times, the next one COUNT + 1 times, ...
//     copies COUNT             the same for functions that copy
//     raw COUNT NAME...        the same for these functions; arguments: a pointer to zeros, then 0
//     words COUNT NAME W...    calls this function COUNT times with these numbers as arguments
//     hang NAME [spin]         calls this function in a thread, which then sleeps or spins inside it forever
//     init                     calls cuInit()
//     addresses NAME...        calls cuGetProcAddress() for these names
//
// It answers each command with JSON lines, ending with one of type "done". It exits at the end of stdin.
#include "calls.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& message)
{
    fprintf(stderr, "caller: %s\n", message.c_str());
    exit(1);
}

void print_triple(const char* key, const Triple& t)
{
    printf(",\"%s\":[%u,%u,%u]", key, t[0], t[1], t[2]);
}

// Prints one line per kernel. A launch on several devices launches each of its kernels once per call.
void print_truth(const Call& call, unsigned count, int result)
{
    for (const Arguments& a : call.kernels) {
        printf(R"({"type":"call","function":"%s","kind":"%s","count":%u,"result":%d,"handle":"0x%lx","stream":"0x%lx")",
               call.function.c_str(), call.kind.c_str(), count, result, a.handle, a.stream);
        if (call.kind == "kernel") {
            print_triple("grid", a.grid);
            print_triple("block", a.block);
            printf(",\"smem\":%u", a.smem);
        }
        printf("}\n");
    }
}

void make_calls(void* library, unsigned count)
{
    for (const Call& call : calls_of(library)) {
        const int result = call.make();
        for (unsigned i = 1; i < count; i++)
            if (call.make() != result)
                fail(call.function + " does not always return the same result");
        print_truth(call, count, result);
        count++;
    }
}

void make_raw_calls(void* library, unsigned count, const std::vector<std::string>& names)
{
    using Function = int (*)(void*, void*, void*, void*, void*, void*, void*, void*, void*, void*);
    static std::array<uint64_t, 4096> zeros; // some functions read or write through the pointer first
    for (const std::string& name : names) {
        auto* const function = reinterpret_cast<Function>(dlsym(library, name.c_str()));
        if (!function)
            fail("the library does not export " + name);
        std::map<int, unsigned> results;
        for (unsigned i = 0; i < count; i++) {
            zeros.fill(0);
            results[function(zeros.data(), nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                             nullptr)]++;
        }
        for (const auto& [result, times] : results)
            printf(R"({"type":"call","function":"%s","count":%u,"result":%d})"
                   "\n",
                   name.c_str(), times, result);
        count++;
    }
}

void make_calls_with(void* library, unsigned count, const std::string& name, const std::vector<uint64_t>& words)
{
    using Function = int (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    auto* const function = reinterpret_cast<Function>(dlsym(library, name.c_str()));
    if (!function)
        fail("the library does not export " + name);
    std::array<uint64_t, 8> w{};
    std::copy_n(words.begin(), std::min(words.size(), w.size()), w.begin());
    for (unsigned i = 0; i < count; i++)
        printf(R"({"type":"call","function":"%s","result":%d})"
               "\n",
               name.c_str(), function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]));
}

#if defined(__x86_64__)

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

// SIGTRAP handler, called after each instruction. At the library's first call or return instruction, calls hang()
// instead, so that the stack contains real frames of the library.
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

void hang_in(void* library, const std::string& name, bool spinning)
{
    using Function = int (*)(void*, void*, void*, void*, void*, void*);
    static std::array<uint64_t, 4096> zeros;
    auto* const function = reinterpret_cast<Function>(dlsym(library, name.c_str()));
    Dl_info where;
    if (!function || !dladdr(reinterpret_cast<const void*>(function), &where))
        fail("the library does not export " + name);
    library_base = where.dli_fbase;
    is_to_spin = spinning;
    struct sigaction action {};
    action.sa_sigaction = each_step;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, nullptr);
    std::thread([=] {
        asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
        function(zeros.data(), zeros.data(), zeros.data(), zeros.data(), zeros.data(), zeros.data());
        fail(name + " has returned");
    }).detach();
    while (!is_hanging)
        usleep(1000);
    is_hanging = false;
}

#else

void hang_in(void*, const std::string&, bool)
{
    fail("hang is only implemented for x86-64");
}

#endif

void* open_library(const std::string& path)
{
    void* library = dlopen(path.c_str(), RTLD_NOW);
    if (!library)
        fail(dlerror());
    return library;
}

} // namespace

int main()
{
    void* library = nullptr;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string command, path;
        unsigned count = 0;
        words >> command;
        if (command == "open" && words >> path) {
            library = open_library(path);
        } else if (command == "calls" && library && words >> count) {
            make_calls(library, count);
        } else if (command == "raw" && library && words >> count) {
            using Word = std::istream_iterator<std::string>;
            make_raw_calls(library, count, {Word(words), Word()});
        } else if (command == "words" && library && words >> count >> path) {
            using Word = std::istream_iterator<uint64_t>;
            make_calls_with(library, count, path, {Word(words), Word()});
        } else if (command == "hang" && library && words >> path) {
            hang_in(library, path, words >> command && command == "spin");
        } else if (command == "copies" && library && words >> count) {
            make_copies(library, count);
        } else if (command == "init" && library) {
            void* init = dlsym(library, "cuInit");
            printf(R"({"type":"init","result":%d})"
                   "\n",
                   init ? reinterpret_cast<int (*)(unsigned)>(init)(0) : -1);
        } else if (command == "addresses" && library) {
            using Word = std::istream_iterator<std::string>;
            print_addresses(library, {Word(words), Word()});
        } else {
            fail("unknown or incomplete command, or no library is open: '" + line + "'");
        }
        puts(R"({"type":"done"})");
        fflush(stdout);
    }
    return 0;
}
