// SPDX-License-Identifier: Apache-2.0
// Messages between KernelNames and its helper (name_search.hpp), and between StackNames and its helper
// (user_symbols.hpp). Each question gets one answer.
#pragma once

#include "proc/mapped_file.hpp"
#include "reader/message.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// How a kernel's name was found, the most reliable source first.
enum class NameSource : uint8_t {
    lookup,       // the program looked the kernel up by this name, in a traced call
    registration, // the program's code registers this host stub under this name
    symbol,       // the symbol at the host stub's address
    handle,       // the program stores this handle in the variable for a host stub (CUDA 13)
    correlation,  // the runtime passed this handle to the driver during a launch of a kernel whose name is known
    object,       // read from an object of the driver or of HIP (driver_objects.hpp)
    none,
};

constexpr std::string_view source_name(NameSource source)
{
    constexpr std::string_view names[] = {"lookup", "registration", "symbol", "handle", "correlation", "object", ""};
    return names[static_cast<uint8_t>(source)];
}

struct KernelName {
    std::string text;
    NameSource source = NameSource::none;
    bool is_mangled = false; // no helper has demangled it yet
};

inline constexpr size_t kernel_name_max = 16 << 10; // maximum bytes of a mangled name

struct NameQuestion {
    enum class Kind : uint8_t {
        kernel,  // find the name of `handle`
        text,    // read the name of `handle` at `address`
        name,    // demangle `name`
        driver,  // demangle `name`, for which the driver has returned `handle`; also learn the layout of the driver's
                 // object at `handle`
        process, // queue scans of the process's files
        scanned, // the scan of a file has ended; the message carries a descriptor for the resulting Registrations
        tick,    // a second has passed
        forget,  // the process has exited or called exec
    };
    Kind kind = Kind::kernel;
    ImageId image{};
    uint64_t handle = 0;
    uint64_t address = 0;
    std::string name{};
    NameSource source = NameSource::none; // source of `name`, or of the text at `address`
    uint64_t device = 0, inode = 0;       // the scanned file
    bool scanner_is_free = false;         // true if no scan is running, so that the answer may request one
};

void fields(auto& each, same_as_const<NameQuestion> auto& q)
{
    each(q.kind, q.image.pid, q.image.serial, q.handle, q.address, q.name, q.source, q.device, q.inode,
         q.scanner_is_free);
}

// A file to scan. The message carries a descriptor for the file.
struct ScanWanted {
    uint64_t device = 0, inode = 0;
    std::string build_id{};
    uint64_t file_size = 0;
    pid_t pid = 0; // a process that maps the file
};

void fields(auto& each, same_as_const<ScanWanted> auto& w)
{
    each(w.device, w.inode, w.build_id, w.file_size, w.pid);
}

struct NameAnswer {
    ImageId image{};
    uint64_t handle = 0;
    std::string name{}; // demangled; empty: not found
    NameSource source = NameSource::none;
    uint64_t name_hash = 0;             // hash of the name in the question
    uint64_t learned = 0;               // if this changes, lookups that failed before may succeed
    std::optional<ScanWanted> wanted{}; // if set, requests a scan of this file
};

void fields(auto& each, same_as_const<NameAnswer> auto& a)
{
    each(a.image.pid, a.image.serial, a.handle, a.name, a.source, a.name_hash, a.learned, a.wanted);
}

struct StackQuestion {
    static constexpr size_t addresses_max = 128;

    ImageId image{};
    std::vector<uint64_t> addresses{}; // empty: the process has exited or called exec, so the helper forgets it
    bool innermost = false;            // whether the first address is the innermost address of a stack
};

void fields(auto& each, same_as_const<StackQuestion> auto& q)
{
    each(q.image.pid, q.image.serial, q.addresses, q.innermost);
}

struct StackAnswer {
    struct Frame {
        uint64_t address = 0;
        bool innermost = false;
        bool lasting = false; // whether the text stays valid until StackAnswer::generation changes
        std::string text{};   // empty if there is no code at the address
    };
    static constexpr size_t text_max = 48 << 10; // maximum total bytes of the texts in an answer

    ImageId image{};
    uint64_t generation = 0;     // changes when the mappings of the process change
    std::vector<Frame> frames{}; // frames for the first addresses of the question, as many as fit
};

void fields(auto& each, same_as_const<StackAnswer::Frame> auto& f)
{
    each(f.address, f.innermost, f.lasting, f.text);
}

void fields(auto& each, same_as_const<StackAnswer> auto& a)
{
    each(a.image.pid, a.image.serial, a.generation, a.frames);
}

} // namespace gpusnoop
