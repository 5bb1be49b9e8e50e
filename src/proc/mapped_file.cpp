// SPDX-License-Identifier: Apache-2.0
#include "proc/mapped_file.hpp"

#include "proc/running_thread.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <utility>

namespace gpusnoop {
namespace {

Fd root_of(pid_t pid)
{
    const auto open_root = [](pid_t id) {
        return Fd(open(fmt::format("/proc/{}/root", id).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    };
    Fd root = open_root(pid);
    if (!root && errno == ENOENT)
        if (const auto thread = other_running_thread(pid))
            return open_root(*thread);
    return root;
}

std::optional<FoundFile> find_behind(pid_t pid, const Mapping& mapping)
{
    return find_regular_behind(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, mapping.start, mapping.end));
}

} // namespace

bool cut_deleted(std::string_view& path)
{
    constexpr std::string_view deleted = " (deleted)";
    if (!path.ends_with(deleted))
        return false;
    path.remove_suffix(deleted.size());
    return true;
}

std::optional<FoundFile> find_mapped(pid_t pid, const Mapping& mapping)
{
    if (auto found = find_behind(pid, mapping))
        return found;
    if (const auto thread = other_running_thread(pid))
        if (auto found = find_behind(*thread, mapping))
            return found;
    auto found = find_in_root_of(pid, mapping.path);
    if (found && found->inode != mapping.inode) {
        errno = ESTALE; // another file has taken its path
        return std::nullopt;
    }
    return found;
}

std::optional<FoundFile> find_in_root_of(pid_t pid, const std::string& path)
{
    return find_regular(root_of(pid), path);
}

Fd open_mapped(pid_t pid, const Mapping& mapping)
{
    const auto found = find_mapped(pid, mapping);
    return found ? open_found(*found) : Fd();
}

bool leads_to(pid_t pid, const std::string& path, uint64_t inode)
{
    const auto found = find_in_root_of(pid, path);
    return found && found->inode == inode;
}

} // namespace gpusnoop
