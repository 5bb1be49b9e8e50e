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

class CountedLink {
public:
    explicit CountedLink(std::atomic<int>& ended) : ended_(ended) {}
    ~CountedLink()
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
        made.push_back(std::make_shared<CountedLink>(ended));
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

TEST_CASE("links are detached in parallel, and each warning is reported", "[attach]")
{
    std::atomic<int> ended = 0;
    int warnings = 0;
    const WarningRedirect to([&](const std::string&) { warnings++; });
    detach(links(100, ended));
    CHECK(ended == 100);
    CHECK(warnings == 100);
    detach({});
}

#ifndef __SANITIZE_ADDRESS__
TEST_CASE("without threads, links are detached one by one", "[attach]")
{
    std::atomic<int> ended = 0;
    const WarningRedirect to([](const std::string&) {});
    Links some = links(100, ended);
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
    const rlimit tight{address_space() + (1 << 20), before.rlim_max}; // 1 MiB left; a thread's stack needs 8 MiB
    REQUIRE(::setrlimit(RLIMIT_AS, &tight) == 0);
    detach(std::move(some));
    ::setrlimit(RLIMIT_AS, &before);
    CHECK(ended == 100);
}
#endif
