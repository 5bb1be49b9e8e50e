// SPDX-License-Identifier: Apache-2.0
#include "file_id.hpp"

#include "error.hpp"
#include "fd.hpp"
#include "inodes.skel.h"
#include "skeleton.hpp"

#include "../bpf/inodes.h"

#include <array>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

struct BpfLinkDeleter {
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};

} // namespace

struct FileIds::Iterator {
    Skeleton<inodes_bpf> skeleton;
    std::unique_ptr<bpf_link, BpfLinkDeleter> link;
};

FileIds::FileIds()
{
    auto iterator = std::make_unique<Iterator>();
    iterator->skeleton = open_skeleton<inodes_bpf>();
    if (inodes_bpf::load(iterator->skeleton.get()))
        return;
    // Only this process (link parameters of 6.1, f0d74c4da1f0): older kernels walk all of them, which is slow, not
    // wrong.
    bpf_iter_link_info info{};
    info.task.pid = static_cast<uint32_t>(getpid());
    LIBBPF_OPTS(bpf_iter_attach_opts, options);
    options.link_info = &info;
    options.link_info_len = sizeof(info);
    iterator->link.reset(bpf_program__attach_iter(iterator->skeleton->progs.mapped_inodes, &options));
    if (iterator->link)
        iterator_ = std::move(iterator);
}

FileIds::~FileIds() = default;

FileId FileIds::of(int fd)
{
    struct stat st {};
    fstat(fd, &st);
    FileId id{0, uint64_t{major(st.st_dev)} << 20 | minor(st.st_dev), st.st_ino};
    if (!iterator_)
        return id;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* mapping = mmap(nullptr, page, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED)
        return id;
    Fd walk(bpf_iter_create(bpf_link__fd(iterator_->link.get())));
    std::array<mapped_inode, 128> found{};
    for (ssize_t n = 0; (n = ::read(walk.get(), found.data(), sizeof(found))) > 0;) {
        for (size_t i = 0; i < static_cast<size_t>(n) / sizeof(mapped_inode); i++)
            if (found[i].address == reinterpret_cast<uint64_t>(mapping))
                id = {found[i].kernel_inode, found[i].device, found[i].inode};
    }
    munmap(mapping, page);
    return id;
}

} // namespace gpusnoop
