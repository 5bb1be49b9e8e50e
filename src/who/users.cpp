// SPDX-License-Identifier: Apache-2.0
#include "who/users.hpp"

#include "base/accounts.hpp"
#include "who/host_files.hpp"

#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <utility>

namespace gpusnoop {

Users::Users(const std::string& host_root)
{
    if (const auto text = HostFiles(host_root).read("etc/passwd"))
        for (UserAccount& account : parse_accounts(*text))
            names_.try_emplace(account.uid, std::move(account.name));
}

// The folder's owner is no answer: it is root's where the process is not to be dumped.
std::optional<std::string> Users::of(pid_t pid) const
{
    std::ifstream status(fmt::format("/proc/{}/status", pid));
    std::string word;
    uint32_t real = 0, effective = 0;
    while (status >> word && word != "Uid:") // after the name, which has no line of its own in it (fs/proc/array.c)
        status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    if (!(status >> real >> effective))
        return std::nullopt;
    const auto name = names_.find(effective);
    return name == names_.end() ? fmt::format("{}", effective) : name->second;
}

} // namespace gpusnoop
