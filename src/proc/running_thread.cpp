// SPDX-License-Identifier: Apache-2.0
#include "proc/running_thread.hpp"

#include "base/read_text.hpp"

#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <sstream>
#include <string>

namespace gpusnoop {
namespace {

struct Exiting {
    bool exits = false;   // it has exited, or is past the point where it loses memory and files
    uint64_t threads = 0; // of its process, exited ones that are still listed included
};

// nullopt where there is no such thread.
std::optional<Exiting> state_of(const std::string& folder)
{
    constexpr size_t max = 4096;
    constexpr uint64_t exiting_flag = 4; // PF_EXITING of include/linux/sched.h
    const std::string text = read_text(folder + "/stat", max).value_or("");
    const size_t name_end = text.rfind(") "); // the name may hold anything
    if (name_end == std::string::npos)
        return std::nullopt;
    std::istringstream fields(text.substr(name_end + 2));
    std::string field;
    char state = 0;
    uint64_t flags = 0;
    Exiting found;
    fields >> state;
    for (int skipped = 4; skipped < 9; skipped++)
        fields >> field;
    fields >> flags;
    for (int skipped = 10; skipped < 20; skipped++)
        fields >> field;
    if (!(fields >> found.threads))
        return std::nullopt;
    found.exits = state == 'Z' || state == 'X' || flags & exiting_flag;
    return found;
}

} // namespace

std::optional<pid_t> running_thread(pid_t pid)
{
    const std::string folder = fmt::format("/proc/{}", pid);
    const auto main = state_of(folder);
    if (!main || !main->exits)
        return main ? std::optional(pid) : std::nullopt;
    std::error_code error;
    if (main->threads > 1)
        for (std::filesystem::directory_iterator entry(folder + "/task", error), end; !error && entry != end;
             entry.increment(error)) {
            const std::string name = entry->path().filename();
            pid_t tid = 0;
            std::from_chars(name.data(), name.data() + name.size(), tid);
            if (const auto state = state_of(entry->path()); tid > 0 && state && !state->exits)
                return tid;
        }
    return std::nullopt;
}

std::optional<pid_t> other_running_thread(pid_t pid)
{
    const auto thread = running_thread(pid);
    return thread != pid ? thread : std::nullopt;
}

} // namespace gpusnoop
