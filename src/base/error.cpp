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
    std::function<void(std::string)> warning_sink; // if set, receives warnings instead of stderr
    std::function<void(std::string_view)> withdrawal_sink;
    std::mutex mutex;
    std::vector<std::string>* deferred = nullptr; // collects warnings while a DeferredWarnings exists; else null
    bool stalled = false; // the last wait for stderr timed out; do not wait again until a write succeeds
    uint64_t unshown_messages = 0;
};

Diagnostics& diagnostics()
{
    static Diagnostics instance;
    return instance;
}

// Writes to stderr. Uses one write() if possible, so that lines of several processes do not mix. Returns false if
// stderr stays blocked.
bool put(std::string_view text)
{
    constexpr std::chrono::milliseconds patience(200);
    const NonBlockingWriter writer(STDERR_FILENO);
    for (;;) {
        const ssize_t written = writer.write(text);
        if (written < 0)
            return true; // stderr has failed, so there is nothing to retry
        text.remove_prefix(static_cast<size_t>(written));
        if (written > 0)
            diagnostics().stalled = false;
        if (text.empty())
            return true;
        if (written == 0 && std::exchange(diagnostics().stalled, true))
            return false;
        writer.wait(patience);
    }
}

} // namespace

void print_stderr(std::string_view text) noexcept
{
    uint64_t& unshown_messages = diagnostics().unshown_messages;
    if (unshown_messages) {
        char line[96];
        const auto end = fmt::format_to_n(
            line, sizeof(line), "gpusnoop: {} messages were dropped because stderr was blocked\n", unshown_messages);
        if (!put({line, end.size}))
            return void(unshown_messages++);
        unshown_messages = 0;
    }
    unshown_messages += !put(text);
}

std::string errno_text(int error)
{
    if (rlimit limit{}; error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        return fmt::format(
            "the limit of {} open files is reached (raise it: ulimit -n, or LimitNOFILE= of a systemd service)",
            limit.rlim_cur);
    if (rlimit limit{}; error == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return fmt::format("the file size limit of {} bytes is reached (raise it: ulimit -f, or LimitFSIZE= of a "
                           "systemd service)",
                           limit.rlim_cur);
    return std::generic_category().message(error);
}

void set_tool_name(std::string_view name)
{
    diagnostics().tool = name;
}

WarningRedirect::WarningRedirect(std::function<void(std::string)> sink)
{
    diagnostics().warning_sink = std::move(sink);
}

WarningRedirect::~WarningRedirect()
{
    diagnostics().warning_sink = nullptr;
}

void withdraw(std::string_view message)
{
    if (diagnostics().withdrawal_sink)
        diagnostics().withdrawal_sink(message);
}

WithdrawalRedirect::WithdrawalRedirect(std::function<void(std::string_view)> sink)
{
    diagnostics().withdrawal_sink = std::move(sink);
}

WithdrawalRedirect::~WithdrawalRedirect()
{
    diagnostics().withdrawal_sink = nullptr;
}

DeferredWarnings::DeferredWarnings()
{
    diagnostics().deferred = &messages_;
}

DeferredWarnings::~DeferredWarnings()
{
    diagnostics().deferred = nullptr;
    for (const std::string& message : messages_)
        warn(message);
}

void warn(std::string_view message) noexcept
try {
    Diagnostics& d = diagnostics();
    if (d.deferred) {
        const std::lock_guard lock(d.mutex);
        d.deferred->emplace_back(message);
        return;
    }
    if (d.warning_sink)
        return d.warning_sink(std::string(message));
    std::string line = d.tool + ": ";
    append_printable(line, message);
    line += '\n';
    print_stderr(line);
} catch (const std::bad_alloc&) {
    print_stderr("gpusnoop: out of memory while printing a message\n");
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
