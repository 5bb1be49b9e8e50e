// SPDX-License-Identifier: Apache-2.0
#include "rows/output.hpp"

#include "base/fd.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <sys/utsname.h>

namespace gpusnoop {

namespace {

std::string text_of(const char* path)
{
    constexpr size_t most = 64 << 10;
    return read_text(path, most).value_or("");
}

uint64_t fnv1a(std::string_view text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

} // namespace

RunIdentity this_run()
{
    RunIdentity identity;
    identity.boot_id = text_of("/proc/sys/kernel/random/boot_id");
    identity.boot_id.resize(std::min(identity.boot_id.find('\n'), identity.boot_id.size()));
    constexpr int start_time = 22; // field of /proc/PID/stat: clock ticks since boot
    const std::string stat = text_of("/proc/self/stat");
    identity.run =
        fmt::format("{:016x}", fnv1a(fmt::format("{} {} {}", identity.boot_id, stat.substr(0, stat.find(' ')),
                                                 stat_field(stat, start_time))))
            .substr(0, 12);
    utsname names{};
    if (uname(&names) == 0)
        identity.host = names.nodename;
    identity.command = text_of("/proc/self/cmdline");
    if (identity.command.ends_with('\0'))
        identity.command.pop_back();
    std::ranges::replace(identity.command, '\0', ' ');
    return identity;
}

} // namespace gpusnoop
