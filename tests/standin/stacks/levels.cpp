// SPDX-License-Identifier: Apache-2.0
// levels DRIVER GO WHAT TIMES [NCCL]: launches (launch), sleeps (sleep), takes part in collectives (reduce), or
// launches and says from where (told), so many times below five libraries; before that it launches once by itself.
#include "launch.hpp"

#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <iterator>

namespace {

stacks::Launch launch;
int (*reduce)(const void*, void*, size_t, int, int, void*, void*);
void* comm;
enum { launching, sleeping, reducing, telling } what;

[[gnu::always_inline]] inline int launch_once()
{
    return launch(reinterpret_cast<void*>(16), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
}

// Callers by the tables for exceptions, a line each: their symbol, how far behind it, and their file.
[[gnu::noinline]] void tell_callers()
{
    void* callers[64];
    const int count = backtrace(callers, std::size(callers));
    for (int i = 2; i < count; i++) { // without this one and level0()
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
    if (what == sleeping)
        return usleep(10000) + n;
    if (what == reducing)
        return reduce(nullptr, nullptr, 16, 7, 0, comm, nullptr) + n;
    if (what == telling && n == 5)
        tell_callers();
    return launch_once() + n;
}

int main(int argc, char** argv)
{
    const auto asked = [&](const char* word) { return strcmp(argv[3], word) == 0; };
    what = asked("sleep") ? sleeping : asked("reduce") ? reducing : asked("told") ? telling : launching;
    launch = stacks::launch_of(argv[1]);
    if (what == reducing) {
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
