// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include "base/fd.hpp"
#include "base/text.hpp"
#include "base/withdrawals.hpp"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <mutex>
#include <new>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

namespace {

struct Diagnostics {
    std::string tool = "gpusnoop";
    int verbosity = 0;
    std::function<void(std::string)> reader; // of warnings, in stderr's place
    std::function<void(std::string_view)> withdrawals;
    std::mutex mutex;
    std::vector<std::string>* held = nullptr; // where threads may warn
    bool stalled = false;                     // stderr is not waited for again before it takes something
    uint64_t unsaid = 0;                      // messages that it did not take
};

Diagnostics& diagnostics()
{
    static Diagnostics instance;
    return instance;
}

// One write where it can be, so that a line stays whole beside what others print. False where nobody took it in a
// while.
bool put(std::string_view text)
{
    constexpr std::chrono::milliseconds patience(200);
    const NonBlockingWriter to(STDERR_FILENO);
    for (;;) {
        const ssize_t written = to.write(text);
        if (written < 0)
            return true; // nobody is left to tell, now or later
        text.remove_prefix(static_cast<size_t>(written));
        if (written > 0)
            diagnostics().stalled = false;
        if (text.empty())
            return true;
        if (written == 0 && std::exchange(diagnostics().stalled, true))
            return false;
        to.wait(patience);
    }
}

} // namespace

void say(std::string_view text) noexcept
{
    uint64_t& unsaid = diagnostics().unsaid;
    if (unsaid) {
        char told[96];
        const auto end =
            fmt::format_to_n(told, sizeof(told), "gpusnoop: {} messages were not shown: nobody read them\n", unsaid);
        if (!put({told, end.size}))
            return void(unsaid++);
        unsaid = 0;
    }
    unsaid += !put(text);
}

std::string errno_text(int error)
{
    if (rlimit limit{}; error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        return fmt::format(
            "this process may have no more than {} open files (raise the limit: ulimit -n, or LimitNOFILE= "
            "of a systemd service)",
            limit.rlim_cur);
    if (rlimit limit{}; error == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return fmt::format("a file may have no more than {} bytes (raise the limit: ulimit -f, or LimitFSIZE= of a "
                           "systemd service)",
                           limit.rlim_cur);
    return std::generic_category().message(error);
}

void set_tool_name(std::string_view name)
{
    diagnostics().tool = name;
}

WarningsTo::WarningsTo(std::function<void(std::string)> reader)
{
    diagnostics().reader = std::move(reader);
}

WarningsTo::~WarningsTo()
{
    diagnostics().reader = nullptr;
}

void withdraw(std::string_view message)
{
    if (diagnostics().withdrawals)
        diagnostics().withdrawals(message);
}

WithdrawalsTo::WithdrawalsTo(std::function<void(std::string_view)> reader)
{
    diagnostics().withdrawals = std::move(reader);
}

WithdrawalsTo::~WithdrawalsTo()
{
    diagnostics().withdrawals = nullptr;
}

WarningsHeld::WarningsHeld()
{
    diagnostics().held = &kept_;
}

WarningsHeld::~WarningsHeld()
{
    diagnostics().held = nullptr;
    for (const std::string& message : kept_)
        warn(message);
}

void warn(std::string_view message) noexcept
try {
    Diagnostics& d = diagnostics();
    if (d.held) {
        const std::lock_guard lock(d.mutex);
        d.held->emplace_back(message);
        return;
    }
    if (d.reader)
        return d.reader(std::string(message));
    std::string line = d.tool + ": ";
    append_printable(line, message);
    line += '\n';
    say(line);
} catch (const std::bad_alloc&) {
    say("gpusnoop: there is not enough memory for a message\n");
}

void set_verbosity(int level)
{
    diagnostics().verbosity = level;
}
int verbosity()
{
    return diagnostics().verbosity;
}

void verbose(std::string_view message)
{
    if (verbosity() > 0)
        warn(message);
}

} // namespace gpusnoop
