// SPDX-License-Identifier: Apache-2.0
#include "error.hpp"

#include "text.hpp"

#include <cerrno>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

namespace {

struct Diagnostics {
    std::string tool = "gpusnoop";
    int verbosity = 0;
    std::function<void(std::string)> reader; // of warnings, in stderr's place
};

Diagnostics& diagnostics()
{
    static Diagnostics instance;
    return instance;
}

} // namespace

std::string errno_text(int error)
{
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

void warn(std::string_view message)
{
    if (diagnostics().reader)
        return diagnostics().reader(std::string(message));
    std::string line = diagnostics().tool + ": ";
    append_printable(line, message);
    line += '\n';
    // One write, so that a line stays whole beside what others print; nobody is left to tell if it fails.
    for (std::string_view rest = line; !rest.empty();) {
        ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
        if (written > 0)
            rest.remove_prefix(static_cast<size_t>(written));
        else if (written == 0 || errno != EINTR)
            return;
    }
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
