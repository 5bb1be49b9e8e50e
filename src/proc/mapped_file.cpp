// SPDX-License-Identifier: Apache-2.0
#include "proc/mapped_file.hpp"

#include "base/bpf_map.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "bpf/shared/process.h"
#include "inodes.skel.h"
#include "proc/process.hpp"
#include "proc/threads.hpp"

#include <array>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

struct FileIds::Iterator {
    Skeleton<inodes_bpf> skeleton;
    std::map<pid_t, BpfLink> links; // one per mapping process
};

FileIds::FileIds() = default;
FileIds::~FileIds() = default;

void FileIds::begin()
{
    started_ = true;
    auto iterator = std::make_unique<Iterator>();
    iterator->skeleton = open_skeleton<inodes_bpf>();
    if (!inodes_bpf::load(iterator->skeleton.get()))
        iterator_ = std::move(iterator);
}

FileId FileIds::find(int fd, pid_t mapper, uint64_t address)
{
    // AT_STATX_DONT_SYNC reads only the kernel's cache, so that a FUSE daemon cannot delay the call.
    struct statx st {};
    statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st);
    FileId id{0, uint64_t{st.stx_dev_major} << 20 | st.stx_dev_minor, st.stx_ino, 0};
    if (!started_)
        begin();
    if (!iterator_)
        return id;
    auto [link, added] = iterator_->links.try_emplace(mapper);
    if (added) {
        std::erase_if(iterator_->links, [&](const auto& other) { return other.second && !is_alive(other.first); });
        // Limits the iterator to this process (link parameters since Linux 6.1, commit f0d74c4da1f0). Older kernels
        // iterate over all processes, which is slow, but correct.
        bpf_iter_link_info info{};
        info.task.pid = static_cast<uint32_t>(mapper);
        LIBBPF_OPTS(bpf_iter_attach_opts, options);
        options.link_info = &info;
        options.link_info_len = sizeof(info);
        link->second.reset(bpf_program__attach_iter(iterator_->skeleton->progs.mapped_inodes, &options));
    }
    if (!link->second)
        return id;
    const Fd walk(bpf_iter_create(bpf_link__fd(link->second.get())));
    std::array<mapped_inode, 128> found{};
    for (ssize_t n = 0; (n = ::read(walk.get(), found.data(), sizeof(found))) > 0;) {
        for (size_t i = 0; i < static_cast<size_t>(n) / sizeof(mapped_inode); i++)
            if (found[i].process == static_cast<uint64_t>(mapper) && found[i].address == address)
                id = {found[i].kernel_inode, found[i].device, found[i].inode, found[i].file_system};
    }
    return id;
}

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
    return find_regular_by_link(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, mapping.start, mapping.end));
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
        errno = ESTALE; // the path now leads to another file
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
