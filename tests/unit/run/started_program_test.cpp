// SPDX-License-Identifier: Apache-2.0
#include "run/started_program.hpp"

#include "proc/process.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

// Handles signals, and restores this process's signal state at the end.
struct Signals {
    ~Signals() { ending.restore(); }
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

MappingGate::Event next_event(MappingGate& gate)
{
    pollfd readable{gate.descriptor(), POLLIN, 0};
    poll(&readable, 1, 60'000);
    auto event = gate.next();
    REQUIRE(event);
    if (event->what == MappingGate::What::refused)
        SKIP("MappingGate needs CAP_SYS_ADMIN");
    return std::move(*event);
}

// Also compares the name, because other tests may leave children, such as killed helpers that have not exited yet.
bool is_our_gatekeeper(pid_t pid)
{
    return parent_of(pid) == getpid() && process_name(pid) == "gpusnoop-gate";
}

bool runs(const StartedProgram& program)
{
    usleep(20'000);
    siginfo_t ended{};
    return waitid(P_PID, static_cast<id_t>(program.pid()), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && !ended.si_pid;
}

} // namespace

TEST_CASE("wait() returns the exit status that a shell would report", "[program]")
{
    CHECK(status_of({"true"}) == 0);
    CHECK(status_of({"sh", "-c", "exit 7"}) == 7);
    CHECK(status_of({"sh", "-c", "kill -TERM $$"}) == 128 + SIGTERM);
    for (const char* name : {"no-such-program", "/no/such/program", ""})
        CHECK(status_where_it_cannot_start(name) == 127);
    for (const char* name : {"/dev/null", "/"})
        CHECK(status_where_it_cannot_start(name) == 126);
}

TEST_CASE("a program is held until it is released, and never runs if it is not released", "[program]")
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

TEST_CASE("a program inherits the signal mask and dispositions that the tool was started with", "[program]")
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

TEST_CASE("a program that maps a file waits until it is released", "[program]")
{
    Signals signals;
    const MappingGate::Policy policy{
        .holds = [](std::string_view path) { return path.find("/libc.so") != std::string_view::npos; }};
    StartedProgram program({"sh", "-c", "exit 7"}, signals.ending, policy);
    program.release(false);
    const MappingGate::Event event = next_event(*program.gate());
    CHECK(event.what == MappingGate::What::mapping);
    CHECK(policy.holds(event.path));
    CHECK(event.tid == program.pid());
    CHECK(event.file);
    CHECK(runs(program));
    program.gate()->release(event.id);
    CHECK(program.wait(signals.ending) == 7);
}

TEST_CASE("a program waits at its start, and continues when the gate opens", "[program]")
{
    Signals signals;
    const MappingGate::Policy policy{.holds = [](std::string_view) { return false; }, .holds_exec = true};
    StartedProgram program({"sh", "-c", "exit 7"}, signals.ending, policy);
    program.release(false);
    const MappingGate::Event event = next_event(*program.gate());
    CHECK(event.what == MappingGate::What::exec);
    CHECK(runs(program));
    CHECK(program.wait(signals.ending) == 7); // wait() opens the gate
}

TEST_CASE("no gatekeeper process is left if the program was never released, or once it has exited", "[program]")
{
    Signals signals;
    {
        const StartedProgram program({"true"}, signals.ending, MappingGate::Policy{});
    }
    CHECK(std::ranges::none_of(all_processes(), is_our_gatekeeper));
    {
        StartedProgram program({"true"}, signals.ending, MappingGate::Policy{.holds = [](auto) { return false; }});
        program.release(false);
        pollfd gate{program.gate()->descriptor(), 0, 0};
        poll(&gate, 1, 60'000); // until the gatekeeper has exited
        CHECK(program.wait(signals.ending) == 0);
    }
    CHECK(std::ranges::none_of(all_processes(), is_our_gatekeeper));
}
