// SPDX-License-Identifier: Apache-2.0
#include "who/command_lines.hpp"

#include "tests/unit/base/sleeping_child.hpp"

#include <string>

using namespace gpusnoop;

namespace {

// A sleeping program with the given argument.
struct Program : SleepingChild {
    explicit Program(const std::string& argument)
        : SleepingChild([&] { return execlp("sh", "sh", "-c", "sleep 60; :", argument.c_str(), "last", nullptr) == 0; })
    {}
    ImageId image() const { return {static_cast<uint32_t>(pid()), 1}; }
};

} // namespace

TEST_CASE("a command line is shown as words separated by blanks, up to 4 KiB", "[who]")
{
    CommandLines lines;
    const Program program("first");
    CHECK(lines.last_known(program.image()).empty());
    CHECK(lines.of(program.image()) == "sh -c sleep 60; : first last");
    lines.forget(program.image());
    CHECK(lines.last_known(program.image()).empty());
    CHECK(lines.of(Program(std::string(100'000, 'x')).image()).size() == 4096);
}

TEST_CASE("an exited process keeps its last known command line", "[who]")
{
    CommandLines lines;
    Program program("first");
    const ImageId image = program.image();
    lines.of(image);
    program.end();
    CHECK(lines.of(image) == "sh -c sleep 60; : first last");
    CHECK(lines.of({image.pid, 2}).empty());
}
