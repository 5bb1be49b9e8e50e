// SPDX-License-Identifier: Apache-2.0
#include "run/started_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

using namespace gpusnoop;

namespace {

// The signals of this process are as before when it ends.
struct Signals {
    ~Signals() { ending.as_before(); }
    EndingSignals ending;
};

int status_of(const std::vector<std::string>& words)
{
    Signals signals;
    StartedProgram program(words, signals.ending);
    program.release(false);
    return program.wait(signals.ending);
}

int status_where_it_cannot_start(const std::string& name)
{
    try {
        status_of({name});
    } catch (const CannotStart& error) {
        return error.status();
    }
    return 0;
}

} // namespace

TEST_CASE("the status of a program is passed on as a shell does", "[program]")
{
    CHECK(status_of({"true"}) == 0);
    CHECK(status_of({"sh", "-c", "exit 7"}) == 7);
    CHECK(status_of({"sh", "-c", "kill -TERM $$"}) == 128 + SIGTERM);
    CHECK(status_where_it_cannot_start("no-such-program") == 127);
    CHECK(status_where_it_cannot_start("/no/such/program") == 127);
    CHECK(status_where_it_cannot_start("/dev/null") == 126);
    CHECK(status_where_it_cannot_start("/") == 126);
    CHECK(status_where_it_cannot_start("") == 127);
}

TEST_CASE("a program is held until it is released, and has not begun where it never is", "[program]")
{
    const std::string made = "/tmp/gpusnoop-held-" + std::to_string(getpid());
    Signals signals;
    {
        StartedProgram program({"touch", made}, signals.ending);
        usleep(20'000);
        CHECK(kill(program.pid(), 0) == 0);
    }
    CHECK(!std::filesystem::exists(made));
    StartedProgram program({"touch", made}, signals.ending);
    program.release(true);
    CHECK(program.wait(signals.ending) == 0);
    CHECK(std::filesystem::remove(made));
}

TEST_CASE("a program has the signals that the tool was started with", "[program]")
{
    std::ifstream file("/proc/self/status");
    std::string wanted;
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("SigBlk") || line.starts_with("SigIgn"))
            wanted += line + "\n";
    const std::string script = "test \"$(grep -E 'Sig(Blk|Ign)' /proc/self/status)\" = \"$0\"";
    wanted.pop_back();
    CHECK(status_of({"sh", "-c", script, wanted}) == 0);
}
