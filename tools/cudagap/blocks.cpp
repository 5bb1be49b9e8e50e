// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/blocks.hpp"

#include "base/bpf_map.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <span>
#include <string_view>

namespace gpusnoop {

std::map<BlockKey, BlockGroup> BlockStacks::drain(const std::vector<ThreadTime>& times, const CallView& view,
                                                  Processes& processes)
{
    std::map<BlockKey, BlockGroup> groups;
    places_.clear();
    totals_.drain(times,
                  [&](const block_key& key, const ThreadTime& time, const block_count&, const block_count& added) {
                      BlockGroup& group =
                          groups[{.who = who_key(view.who, processes, time.image, time.tid, time.cgroup),
                                  .part = key.part,
                                  .stack = places_.number_of(time.image, key.user, static_cast<uint32_t>(key.kernel))}];
                      group.who.add(time.image, processes.owner(time.image, time.cgroup));
                      group.ns += added.sum;
                      group.times += added.times;
                  });
    return groups;
}

Frames BlockStacks::frames(const ImageId& image, int32_t user, int32_t kernel)
{
    if (!kernel_names_)
        kernel_names_ = KernelSymbols::of_this_kernel();
    Frames all(kernel_names_->frames(stack_trace(stacks_fd_, kernel)));
    Frames users = users_.frames(image, user, 0);
    if (!users.parts.empty()) // `parts` is either empty, or has one element per line
        for (const std::string& line : all.lines)
            all.parts.push_back(
                {.language = "kernel", .function = line.substr(0, line.rfind("+0x")), .file = {}, .line = {}});
    std::ranges::move(users.lines, std::back_inserter(all.lines));
    std::ranges::move(users.parts, std::back_inserter(all.parts));
    return all;
}

void BlockStacks::tick(const ThreadTimes& times)
{
    users_.tick();
    totals_.for_each_key([&](const block_key& key) {
        if (const auto image = times.image_of(key.place))
            users_.expect(*image, key.user);
    });
}

void BlockStacks::forget(const std::vector<ImageId>& images)
{
    for (const ImageId& image : images) {
        users_.on_exit(static_cast<pid_t>(image.pid));
        users_.forget(image);
    }
}

namespace {

template<size_t size>
std::string_view text_of(const char (&name)[size])
{
    return {name, strnlen(name, size)};
}

// Returns the path's last folder and its file name.
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
    constexpr size_t max_reads = 20; // limit per second, because /proc/PID/maps may have megabytes
    auto found = mappings_.find(pid);
    if (found == mappings_.end()) {
        if (++reads_ > max_reads)
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

namespace {

void add(FileGroup& group, uint64_t bucket, const block_count& added)
{
    if (bucket == FILE_READ) {
        group.read_bytes += added.sum;
    } else if (bucket == FILE_WRITTEN) {
        group.written_bytes += added.sum;
    } else {
        group.ns += added.sum;
        group.waits.add(static_cast<unsigned>(bucket), added.times);
    }
}

} // namespace

std::map<FileKey, FileGroup> FileWaits::drain(const std::vector<ThreadTime>& times, const CallView& view,
                                              Processes& processes)
{
    std::map<FileKey, FileGroup> groups;
    totals_.drain(times,
                  [&](const file_key& key, const ThreadTime& time, const file_count& now, const block_count& added) {
                      FileGroup& group = groups[{.who = who_key(view.who, processes, time.image, time.tid, time.cgroup),
                                                 .device = key.device,
                                                 .inode = key.inode,
                                                 .file = file_name(now.folder, now.file)}];
                      group.who.add(time.image, processes.owner(time.image, time.cgroup));
                      add(group, key.bucket, added);
                  });
    return groups;
}

} // namespace gpusnoop
