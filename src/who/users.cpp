// SPDX-License-Identifier: Apache-2.0
#include "who/users.hpp"

#include "who/host_files.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <string_view>
#include <sys/stat.h>

namespace gpusnoop {
namespace {

// Not getpwuid(): it asks the network for names, and a static program cannot call it.
std::map<uint32_t, std::string> parse_passwd(std::string_view text)
{
    std::map<uint32_t, std::string> names;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const size_t name = line.find(':'), password = line.find(':', name + 1);
        uint32_t uid = 0;
        if (name == 0 || name == line.npos || password == line.npos)
            continue;
        const auto [end, error] = std::from_chars(line.data() + password + 1, line.data() + line.size(), uid);
        if (error == std::errc() && end != line.data() + line.size() && *end == ':')
            names.try_emplace(uid, line.substr(0, name));
    }
    return names;
}

} // namespace

Users::Users(const std::string& host_root)
{
    if (const auto text = HostFiles(host_root).read("etc/passwd"))
        names_ = parse_passwd(*text);
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
