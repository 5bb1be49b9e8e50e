// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include "../workload/script.hpp"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace ioctls {

bool Memory::kind_of(const std::string& word, Kind& kind)
{
    constexpr const char* words[] = {"plain", "cold", "unmapped", "null", "kernel"};
    for (int i = 0; i < 5; i++)
        if (word == words[i]) {
            kind = static_cast<Kind>(i);
            return true;
        }
    return false;
}

Memory::Memory(Kind wanted, size_t bytes) : kind(wanted), size(bytes)
{
    const size_t page = 4096;
    mapped = (size + page - 1) / page * page;
    if (!mapped)
        mapped = page;
    int fd = memfd_create("ioctl", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(mapped)))
        workload::fail("cannot allocate memory for a structure");
    auto map = [&](void* at, int protection, int flags, int file) {
        void* address = mmap(at, mapped, protection, flags, file, 0);
        if (address == MAP_FAILED)
            workload::fail("cannot allocate memory for a structure");
        return static_cast<char*>(address);
    };
    view = map(nullptr, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    // An inaccessible page follows the structure.
    void* reserved = mmap(nullptr, mapped + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserved == MAP_FAILED)
        workload::fail("cannot allocate memory for a structure");
    pages = static_cast<char*>(reserved);
    if (readable())
        map(pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd);
    if (kind == Plain)
        for (size_t i = 0; i < mapped; i += page)
            static_cast<volatile char*>(pages)[i] = 0;
    close(fd);
}

Memory::~Memory()
{
    munmap(pages, mapped + 4096);
    munmap(view, mapped);
}

uint64_t Memory::address() const
{
    if (kind == Null)
        return 0;
    if (kind == Kernel)
        return 0xffffffff81000000;
    return reinterpret_cast<uint64_t>(pages + (mapped - size));
}

void Memory::cool() const
{
    if (kind == Cold)
        madvise(pages, mapped, MADV_DONTNEED);
}

void Memory::write(int offset, const void* from, size_t bytes)
{
    if (holds(offset, bytes))
        memcpy(view + (mapped - size) + offset, from, bytes);
}

void Memory::read(int offset, void* to, size_t bytes) const
{
    if (holds(offset, bytes))
        memcpy(to, view + (mapped - size) + offset, bytes);
}

} // namespace ioctls
