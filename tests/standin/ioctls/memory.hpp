// SPDX-License-Identifier: Apache-2.0
// Memory for a call's structure. The structure ends at a page boundary, and the next page is inaccessible, so that
// reading beyond the structure fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ioctls {

class Memory {
public:
    enum Kind {
        Plain,
        Cold,     // mapped, but not in the page table during the call: the driver can read it, a tracer may fail to
        Unmapped, // not even the driver can read it
        Null,
        Kernel, // a kernel address
    };
    static bool kind_of(const std::string& word, Kind&);

    Memory(Kind, size_t size);
    ~Memory();
    Memory(const Memory&) = delete;

    uint64_t address() const; // the address to pass to the kernel
    bool readable() const { return kind == Plain || kind == Cold; }
    void cool() const; // removes Cold memory from the page table; call this before each ioctl

    // Access through a second mapping, which works even if the address is unreadable.
    template<class T>
    void put(int offset, T value)
    {
        write(offset, &value, sizeof value);
    }
    template<class T>
    T get(int offset) const
    {
        T value{};
        read(offset, &value, sizeof value);
        return value;
    }
    bool holds(int offset, size_t bytes) const { return offset >= 0 && offset + bytes <= size; }

private:
    void write(int offset, const void*, size_t);
    void read(int offset, void*, size_t) const;

    Kind kind;
    size_t size, mapped;
    char *pages, *view; // two mappings of one file
};

} // namespace ioctls
