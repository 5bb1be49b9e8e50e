// SPDX-License-Identifier: Apache-2.0
// The one exception of the suite, and the diagnostics that go to stderr.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

// Something the run cannot go on without. run_tool() prints "tool: what" and "hint: ..." and exits with 1.
class Error : public std::runtime_error {
public:
    explicit Error(const std::string& what, std::string hint = {}) : std::runtime_error(what), hint_(std::move(hint)) {}
    const std::string& hint() const { return hint_; } // what the user can do; may be empty

private:
    std::string hint_;
};

// "Permission denied" and the like for an errno value. With the limit that was met, where there is one to raise.
std::string errno_text(int error);

// The name that starts every line of warn(); "gpusnoop" until it is set.
void set_tool_name(std::string_view name);

// Writes one line "tool: message" to stderr. Control characters in it are shown as \xNN. Neither waits for a reader who
// does not come nor throws: what could not be said is counted, and told with what can be said next.
void warn(std::string_view message) noexcept;
// The same for what is harmless: text as it is, line end and all, and always to stderr.
void say(std::string_view text) noexcept;

// As long as it lives, warnings go to somebody who shows them, and not to stderr. One at a time.
class WarningsTo {
public:
    explicit WarningsTo(std::function<void(std::string)> reader);
    ~WarningsTo();
    WarningsTo(const WarningsTo&) = delete;
    WarningsTo& operator=(const WarningsTo&) = delete;
};

// As long as it lives, warnings are kept, and said when it ends: threads may then warn at once. One at a time.
class WarningsHeld {
public:
    WarningsHeld();
    ~WarningsHeld();
    WarningsHeld(const WarningsHeld&) = delete;
    WarningsHeld& operator=(const WarningsHeld&) = delete;

private:
    std::vector<std::string> kept_;
};

// How much warn()'s quieter sister says: 0 nothing, 1 with -v, 2 with -vv (libbpf's own log too).
void set_verbosity(int level);
int verbosity();
void verbose(std::string_view message); // shown from -v on

} // namespace gpusnoop
