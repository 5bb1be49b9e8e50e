// SPDX-License-Identifier: Apache-2.0
// Exception class of all tools, and messages on stderr.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

// A fatal error. run_tool() prints "tool: message" and "hint: ..." and exits with 1.
class Error : public std::runtime_error {
public:
    explicit Error(const std::string& message, std::string hint = {})
        : std::runtime_error(message), hint_(std::move(hint))
    {}
    const std::string& hint() const { return hint_; } // the remedy; may be empty

private:
    std::string hint_;
};

// Returns the text of an errno value, e.g. "Permission denied". For EMFILE and EFBIG, the text names the limit and how
// to raise it.
std::string errno_text(int error);

// Sets the tool name that warn() prints before each message; the default is "gpusnoop".
void set_tool_name(std::string_view name);

// Writes one line "tool: message" to stderr, with control characters as \xNN. Never throws. If stderr is blocked, waits
// briefly, then drops the message. The next message is preceded by the number of dropped messages.
void warn(std::string_view message) noexcept;
// Writes trusted text unchanged to stderr, even while a WarningRedirect exists. The text must end with a newline. If
// stderr is blocked, waits and drops the text like warn().
void print_stderr(std::string_view text) noexcept;

// While a WarningRedirect exists, warnings go to `sink` instead of stderr. At most one exists at a time.
class WarningRedirect {
public:
    explicit WarningRedirect(std::function<void(std::string)> sink);
    ~WarningRedirect();
    WarningRedirect(const WarningRedirect&) = delete;
    WarningRedirect& operator=(const WarningRedirect&) = delete;
};

// While a DeferredWarnings exists, warn() is thread-safe, and its messages are printed when the object is destroyed. At
// most one exists at a time.
class DeferredWarnings {
public:
    DeferredWarnings();
    ~DeferredWarnings();
    DeferredWarnings(const DeferredWarnings&) = delete;
    DeferredWarnings& operator=(const DeferredWarnings&) = delete;

private:
    std::vector<std::string> messages_;
};

// 0: default; 1 (-v): verbose() prints; 2 (-vv): libbpf's log is printed, too.
void set_verbosity(int level);
int verbosity();
void verbose(std::string_view message); // calls warn() if verbosity() > 0

} // namespace gpusnoop
