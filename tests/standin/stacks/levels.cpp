// SPDX-License-Identifier: Apache-2.0
// levels DRIVER GO ACTION TIMES [NCCL]: launches once directly, then performs ACTION, TIMES times, with functions of
// five libraries on the stack. ACTION is launch, sleep, reduce (an NCCL collective), or print (launch, and print the
// callers).
#include "launch.hpp"

#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <iterator>

namespace {

stacks::Launch launch;
int (*reduce)(const void*, void*, size_t, int, int, void*, void*);
void* comm;
enum { launching, sleeping, reducing, printing } action;

[[gnu::always_inline]] inline int launch_once()
{
    return launch(reinterpret_cast<void*>(16), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
}

// Unwinds the stack by the exception tables, and prints one line per caller: symbol, offset, file.
[[gnu::noinline]] void print_callers()
{
    void* callers[64];
    const int count = backtrace(callers, std::size(callers));
    for (int i = 2; i < count; i++) { // skips print_callers() and level0()
        Dl_info found{};
        if (dladdr(callers[i], &found) && found.dli_sname)
            printf("%s+0x%zx (%s)\n", found.dli_sname,
                   static_cast<size_t>(static_cast<char*>(callers[i]) - static_cast<char*>(found.dli_saddr)),
                   strrchr(found.dli_fname, '/') + 1);
        if (found.dli_sname && !strcmp(found.dli_sname, "main"))
            break;
    }
}

} // namespace

extern "C" int level1(int n);

[[gnu::noinline]] int level0(int n)
{
    if (action == sleeping)
        return usleep(10000) + n;
    if (action == reducing)
        return reduce(nullptr, nullptr, 16, 7, 0, comm, nullptr) + n;
    if (action == printing && n == 5)
        print_callers();
    return launch_once() + n;
}

int main(int argc, char** argv)
{
    const auto is_action = [&](const char* word) { return strcmp(argv[3], word) == 0; };
    action = is_action("sleep") ? sleeping : is_action("reduce") ? reducing : is_action("print") ? printing : launching;
    launch = stacks::launch_of(argv[1]);
    if (action == reducing) {
        void* const nccl = dlopen(argv[5], RTLD_NOW);
        const auto begin = reinterpret_cast<int (*)(void**, int, const int*)>(dlsym(nccl, "ncclCommInitAll"));
        reduce = reinterpret_cast<decltype(reduce)>(dlsym(nccl, "ncclAllReduce"));
        begin(&comm, 1, nullptr);
    }
    stacks::wait_for(argv[2]);
    launch_once();
    int sum = argc;
    for (int i = 0; i < atoi(argv[4]); i++)
        sum += level1(i);
    stacks::stay();
    return sum;
}
