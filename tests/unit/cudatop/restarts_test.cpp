// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/restarts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <functional>

using namespace gpusnoop;

namespace {

constexpr uint64_t second = 1'000'000'000, begin = 1000 * second;

struct Lives {
    Restarts restarts;
    uint32_t pid = 100;

    ImageId start(uint64_t at_ns, Restarts::Process process = {.identity = {}, .place = "/user.slice", .parent = 7},
                  const std::string& name = "train")
    {
        process.identity.process = {.pid = ++pid, .serial = pid};
        process.identity.name = name;
        process.start_ns = begin + at_ns;
        restarts.started(process);
        return process.identity.process;
    }
    void end(const ImageId& image, uint64_t at_ns) { restarts.ended(image.pid, begin + at_ns); }
    auto at(uint64_t at_ns) { return restarts.loops(begin + at_ns); }
};

} // namespace

TEST_CASE("a restart loop is reported from the second restart on", "[restarts]")
{
    Lives lives;
    for (uint64_t i = 0; i < 5; i++) {
        const ImageId image = lives.start(i * second);
        CHECK(lives.at(i * second + 1).size() == (i < 2 ? 0 : 1));
        if (i == 1)
            lives.restarts.failed(image, "all 3 copies fail", "cudamemcpy -x");
        lives.end(image, i * second + second / 2);
    }
    const auto loops = lives.at(5 * second);
    REQUIRE(loops.size() == 1);
    CHECK(loops.front().starts == 5);
    CHECK(loops.front().seconds == 5);
    CHECK(loops.front().last_error == "all 3 copies fail");
    CHECK(loops.front().next == "cudamemcpy -x");
    CHECK(loops.front().newest.process.pid == lives.pid);
    CHECK(loops.front().newest.exited);
    CHECK(loops.front().newest.group == lives.restarts.group_of(loops.front().newest.process));
    CHECK(lives.at(8 * second).size() == 1);
    CHECK(lives.at(10 * second).empty()); // nothing has started for 6 s
    lives.start(100 * second);
    CHECK(lives.at(100 * second).empty()); // the earlier starts are too old
}

TEST_CASE("processes that run at the same time are not a restart loop", "[restarts]")
{
    Lives lives;
    std::vector<ImageId> ranks;
    for (uint64_t i = 0; i < 8; i++)
        ranks.push_back(lives.start(i * second / 10));
    for (const ImageId& rank : ranks)
        lives.end(rank, 2 * second);
    CHECK(lives.at(3 * second).empty());
}

TEST_CASE("a restart has the same name and container, or the same name, cgroup and parent", "[restarts]")
{
    struct Case {
        const char* what;
        size_t loops;
        std::function<void(Restarts::Process&, std::string& name, uint32_t i)> change; // of the process started as i-th
    };
    const auto letter = [](uint32_t i) { return std::string(1, static_cast<char>('a' + i)); };
    for (const Case& of : {
             Case{"one parent", 1, [](auto&, auto&, auto) {}},
             Case{"unknown parents", 1, [](auto&process, auto&, auto) { process.parent = 0; }},
             Case{"one container, with a different parent each time", 1,
                  [](auto&process, auto&, auto i) {
                      process = {.identity = {}, .place = "docker:db", .is_contained = true, .parent = 10 + i};
                  }},
             Case{"different names", 0, [&](auto&, auto&name, auto i) { name = letter(i); }},
             Case{"different places", 0, [&](auto&process, auto&, auto i) { process.place = letter(i); }},
             Case{"different parents", 0, [](auto&process, auto&, auto i) { process.parent = 10 + i; }},
         }) {
        INFO(of.what);
        Lives lives;
        for (uint32_t i = 0; i < 3; i++) {
            Restarts::Process process{.identity = {}, .place = "/user.slice", .parent = 7};
            std::string name = "a";
            of.change(process, name, i);
            lives.end(lives.start(i * second, process, name), i * second + 1);
        }
        CHECK(lives.at(3 * second).size() == of.loops);
    }
}

TEST_CASE("exec is not a restart", "[restarts]")
{
    Lives lives;
    for (uint64_t i = 0; i < 4; i++) {
        lives.pid = 100; // the same process
        lives.start(second);
        Verdict identity;
        identity.process = {.pid = 101, .serial = static_cast<uint32_t>(i)};
        identity.name = "train";
        lives.restarts.started({.identity = identity, .start_ns = begin + second, .place = "/user.slice", .parent = 7});
    }
    CHECK(lives.at(3 * second).empty());
}
