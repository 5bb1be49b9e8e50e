// SPDX-License-Identifier: Apache-2.0
#include "attach/links.hpp"

#include "base/error.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

class Counted {
public:
    explicit Counted(std::atomic<int>& ended) : ended_(ended) {}
    ~Counted()
    {
        warn("detached");
        ended_++;
    }

private:
    std::atomic<int>& ended_;
};

Links links(int count, std::atomic<int>& ended)
{
    Links made;
    for (int i = 0; i < count; i++)
        made.push_back(std::make_shared<Counted>(ended));
    return made;
}

#ifndef __SANITIZE_ADDRESS__
rlim_t address_space()
{
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}
#endif

} // namespace

TEST_CASE("links are detached together, and their warnings are told one by one", "[attach]")
{
    std::atomic<int> ended = 0;
    int told = 0;
    const WarningRedirect to([&](const std::string&) { told++; });
    detach(links(100, ended));
    CHECK(ended == 100);
    CHECK(told == 100);
    detach({});
}

#ifndef __SANITIZE_ADDRESS__
TEST_CASE("where no thread can be had, links are detached one by one", "[attach]")
{
    std::atomic<int> ended = 0;
    const WarningRedirect to([](const std::string&) {});
    Links some = links(100, ended);
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
    const rlimit tight{address_space() + (1 << 20), before.rlim_max}; // a thread's stack has 8 MiB
    REQUIRE(::setrlimit(RLIMIT_AS, &tight) == 0);
    detach(std::move(some));
    ::setrlimit(RLIMIT_AS, &before);
    CHECK(ended == 100);
}
#endif
