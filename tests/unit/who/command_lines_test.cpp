// SPDX-License-Identifier: Apache-2.0
#include "who/command_lines.hpp"

#include "proc/process.hpp"

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

// Starts a sleeping program with the given argument.
class Sleeping {
public:
    explicit Sleeping(const std::string& argument) : pid_(fork())
    {
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            execlp("sh", "sh", "-c", "sleep 60; :", argument.c_str(), "last", nullptr);
            _exit(127);
        }
        while (process_name(pid_) != "sh")
            usleep(1000);
    }
    Sleeping(const Sleeping&) = delete;
    Sleeping& operator=(const Sleeping&) = delete;
    ~Sleeping() { end(); }

    void end()
    {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
        pid_ = -1;
    }
    ImageId image() const { return {static_cast<uint32_t>(pid_), 1}; }

private:
    pid_t pid_;
};

} // namespace

TEST_CASE("a command line is shown as words separated by blanks", "[who]")
{
    CommandLines lines;
    const Sleeping program("first");
    CHECK(lines.last_known(program.image()).empty());
    CHECK(lines.of(program.image()) == "sh -c sleep 60; : first last");
    lines.forget(program.image());
    CHECK(lines.last_known(program.image()).empty());
}

TEST_CASE("a command line is truncated at 4 KiB", "[who]")
{
    CommandLines lines;
    const Sleeping program(std::string(100'000, 'x'));
    CHECK(lines.of(program.image()).size() == 4096);
}

TEST_CASE("an exited process keeps its last known command line", "[who]")
{
    CommandLines lines;
    Sleeping program("first");
    const ImageId image = program.image();
    lines.of(image);
    program.end();
    CHECK(lines.of(image) == "sh -c sleep 60; : first last");
    CHECK(lines.of({image.pid, 2}).empty());
}
