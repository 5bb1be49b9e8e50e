// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_files.hpp"

#include "base/read_text.hpp"
#include "gpu/driver_devices.hpp"
#include "gpu/gpu_files.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace gpusnoop {
namespace {

constexpr size_t largest = 4 << 20; // it has a line for each instance that there can be, of 32 GPUs

// Takes "gpu" and a number in front.
std::optional<unsigned> take_number(std::string_view& text, std::string_view name)
{
    if (!text.starts_with(name))
        return std::nullopt;
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data() + name.size(), text.data() + text.size(), number);
    if (error != std::errc() || number > UINT16_MAX)
        return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return number;
}

} // namespace

std::map<unsigned, MigAccess> parse_mig_minors(std::string_view text)
{
    std::map<unsigned, MigAccess> minors;
    while (!text.empty()) {
        std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const auto gpu = take_number(line, "gpu");
        const auto instance = gpu ? take_number(line, "/gi") : std::nullopt;
        if (!instance)
            continue; // "config 1", "monitor 2"
        const auto compute = take_number(line, "/ci");
        if (const auto minor = take_number(line, "/access "))
            minors[*minor] = {*gpu, static_cast<uint16_t>(*instance),
                              compute ? std::optional(static_cast<uint16_t>(*compute)) : std::nullopt};
    }
    return minors;
}

std::set<MigAccess> narrowed(std::set<MigAccess> all)
{
    std::erase_if(all, [&](const MigAccess& access) { // nullopt is less than any number
        const auto next = all.upper_bound(access);
        return !access.compute_instance && next != all.end() && next->gpu_minor == access.gpu_minor &&
               next->gpu_instance == access.gpu_instance;
    });
    return all;
}

MigFiles::MigFiles(const std::string& root) : major_(character_major("nvidia-caps", root))
{
    if (const auto text = major_ ? read_text(root + "/proc/driver/nvidia-caps/mig-minors", largest) : std::nullopt)
        by_minor_ = parse_mig_minors(*text);
}

std::set<MigAccess> MigFiles::of(pid_t pid, const std::string& proc) const
{
    std::set<MigAccess> found;
    if (!major_ || by_minor_.empty())
        return found;
    for (const unsigned minor : open_nvidia_files(pid, *major_, proc).value_or(std::set<unsigned>()))
        if (const auto access = at(minor))
            found.insert(*access);
    return narrowed(std::move(found));
}

std::optional<MigAccess> MigFiles::at(unsigned minor) const
{
    const auto access = by_minor_.find(minor);
    return access == by_minor_.end() ? std::nullopt : std::optional(access->second);
}

} // namespace gpusnoop
