// SPDX-License-Identifier: Apache-2.0
#include "who/host_files.hpp"

#include "base/fd.hpp"
#include "base/privileges.hpp"
#include "base/text.hpp"
#include "proc/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

HostFiles::HostFiles(const std::string& root)
    : root_(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), resolve_(RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)
{}

HostFiles HostFiles::untrusted(const std::string& path) const
{
    return {open(path, O_PATH | O_DIRECTORY), RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
}

Fd HostFiles::open(const std::string& path, int flags) const
{
    return open_below(root_, path, flags, resolve_);
}

std::optional<std::string> HostFiles::read(const std::string& path) const
{
    const Fd file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    struct stat st {};
    if (!file || fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode))
        return std::nullopt;
    auto text = read_text(file, max_size); // does not rely on st_size, which may be wrong or out of date
    if (!text || text->size() > max_size)
        return std::nullopt;
    return text;
}

std::vector<std::string> HostFiles::list(const std::string& path) const
{
    std::vector<std::string> names;
    const Fd folder = open(path, O_RDONLY | O_DIRECTORY);
    // Duplicate the descriptor, because closing a DIR closes its descriptor.
    const int own = folder ? fcntl(folder.get(), F_DUPFD_CLOEXEC, 0) : -1;
    const Directory entries(own >= 0 ? fdopendir(own) : nullptr);
    while (entries && names.size() < max_names) {
        const dirent* const entry = readdir(entries.get());
        if (!entry)
            break;
        if (entry->d_name[0] != '.')
            names.emplace_back(entry->d_name);
    }
    return names;
}

Users::Users(const std::string& host_root)
{
    if (const auto text = HostFiles(host_root).read("etc/passwd"))
        for (UserAccount& account : parse_accounts(*text))
            names_.try_emplace(account.uid, std::move(account.name));
}

// Reads the status file, because the owner of /proc/PID is root if the process is not dumpable.
std::optional<std::string> Users::of(pid_t pid) const
{
    constexpr size_t max = 16 << 10;
    const std::string status = read_text(fmt::format("/proc/{}/status", pid), max).value_or("");
    std::string_view ids = status_value(status, "Uid"); // real, effective, saved
    next_part(ids, '\t');
    const auto effective = leading_number<uint32_t>(ids);
    if (!effective)
        return std::nullopt;
    const auto name = names_.find(*effective);
    return name == names_.end() ? fmt::format("{}", *effective) : name->second;
}

} // namespace gpusnoop
