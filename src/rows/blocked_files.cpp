// SPDX-License-Identifier: Apache-2.0
#include "rows/blocked_files.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <string_view>

namespace gpusnoop {
namespace {

template<size_t size>
std::string_view text_of(const char (&name)[size])
{
    return {name, strnlen(name, size)};
}

// The last folder of a path, and what is in it.
std::string end_of(std::string_view path)
{
    const size_t name = path.rfind('/');
    const size_t folder = name == 0 || name == std::string_view::npos ? name : path.rfind('/', name - 1);
    return std::string(folder == std::string_view::npos || folder == name ? path : path.substr(folder + 1));
}

} // namespace

std::string file_name(const char (&folder)[FOLDER_NAME], const char (&file)[FILE_NAME])
{
    const std::string_view of = text_of(folder), name = text_of(file);
    if (name.empty())
        return {};
    return of.empty() || of == "/" ? std::string(name) : fmt::format("{}/{}", of, name);
}

std::string BlockedFiles::mapped_at(uint32_t pid, uint64_t address)
{
    constexpr size_t most = 20; // processes in a second: a file of mappings may have megabytes
    auto found = mappings_.find(pid);
    if (found == mappings_.end()) {
        if (++looks_ > most)
            return {};
        found = mappings_.emplace(pid, mappings(static_cast<pid_t>(pid))).first;
    }
    const auto& all = found->second;
    const auto mapping =
        std::ranges::find_if(all, [address](const Mapping& one) { return one.start <= address && address < one.end; });
    return mapping == all.end() ? std::string() : end_of(mapping->path);
}

std::string BlockedFiles::file_of(const waker& waker, uint32_t pid)
{
    if (waker.fault)
        return mapped_at(pid, waker.fault);
    return file_name(waker.folder, waker.file);
}

GapFiles BlockedFiles::of(const gap_record& gap)
{
    GapFiles files;
    files[0] = file_of(gap.gap.waker, gap.key.image.pid);
    uint32_t pid = gap.gap.waker.pid;
    for (size_t step = 0; step < std::min<size_t>(gap.known, WAKERS); step++) {
        files.at(step + 1) = file_of(gap.wakers[step].waker, pid);
        pid = gap.wakers[step].waker.pid;
    }
    return files;
}

} // namespace gpusnoop
