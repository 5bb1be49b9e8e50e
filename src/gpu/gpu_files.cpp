// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_files.hpp"

#include "proc/running_thread.hpp"

#include <array>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr size_t max_files = 4096; // of one process
constexpr uint32_t nvidia_major = 195;
constexpr uint32_t max_minor = 247; // those above are nvidiactl and its like

struct Closer {
    void operator()(DIR* folder) const { closedir(folder); }
};

// By its text alone, which the kernel has without asking anybody.
bool is_called_nvidia(int folder, const char* name)
{
    std::array<char, 4096> text;
    const ssize_t length = readlinkat(folder, name, text.data(), text.size());
    if (length <= 0)
        return false;
    const std::string_view target(text.data(), static_cast<size_t>(length));
    return target.substr(target.rfind('/') + 1).starts_with("nvidia");
}

// A name proves nothing. A FUSE server is not asked (AT_STATX_DONT_SYNC, from Linux 4.20 on): it might not answer.
std::optional<unsigned> minor_of(int folder, const char* name, unsigned major)
{
    struct statx status {};
    if (statx(folder, name, AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0 || !S_ISCHR(status.stx_mode) ||
        status.stx_rdev_major != major)
        return std::nullopt;
    return status.stx_rdev_minor;
}

} // namespace

std::optional<std::set<unsigned>> open_gpu_files(pid_t pid, const std::string& proc)
{
    auto minors = open_nvidia_files(pid, nvidia_major, proc);
    if (minors)
        std::erase_if(*minors, [](unsigned minor) { return minor > max_minor; });
    return minors;
}

std::optional<std::set<unsigned>> open_nvidia_files(pid_t pid, unsigned major, const std::string& proc)
{
    const std::unique_ptr<DIR, Closer> folder(
        opendir(fmt::format("{}/{}/fd", proc, running_thread(pid).value_or(pid)).c_str()));
    if (!folder)
        return std::nullopt;
    std::set<unsigned> minors;
    size_t seen = 0;
    while (const dirent* const entry = readdir(folder.get())) {
        if (++seen > max_files)
            return std::nullopt;
        if (!is_called_nvidia(dirfd(folder.get()), entry->d_name))
            continue;
        if (const auto minor = minor_of(dirfd(folder.get()), entry->d_name, major))
            minors.insert(*minor);
    }
    return minors;
}

} // namespace gpusnoop
