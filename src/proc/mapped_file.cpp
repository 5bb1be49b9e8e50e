// SPDX-License-Identifier: Apache-2.0
#include "proc/mapped_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <utility>

namespace gpusnoop {
namespace {

Fd root_of(pid_t pid)
{
    return Fd(open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

} // namespace

std::optional<FoundFile> find_mapped(pid_t pid, const Mapping& mapping)
{
    if (auto found = find_regular_behind(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, mapping.start, mapping.end)))
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
