// SPDX-License-Identifier: Apache-2.0
// What KernelNames and the helper that reads the processes' files and memory for it (name_search.hpp) tell each other.
// A question has one answer each.
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

// Where a kernel's name is from.

// The most certain first.
enum class NameSource : uint8_t {
    lookup,       // the driver was asked for this kernel by name, under our eyes
    registration, // the program's own code registers this host stub under this name
    symbol,       // the symbol at the host stub's address
    handle,       // the program's variable for the handle of this stub (CUDA 13) holds this handle
    correlation,  // the driver was called with this handle within a launch of a kernel whose name is known
    object,       // read from an object of the driver's own or of HIP's, where others keep their kernels' names, too
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
    bool is_mangled = false; // until a helper has answered
};

inline constexpr size_t kernel_name_max = 16 << 10; // mangled

struct NameQuestion {
    enum class What : uint8_t {
        kernel,  // what `handle` stands for
        text,    // the same, where its name is at `address`
        name,    // the readable form of `name`
        driver,  // the same; and it is told: the driver was asked for that kernel, and said `handle`
        process, // it is told: find out what there is to scan of the process
        scanned, // it is told: what has been found in `file`; comes with a descriptor of the Registrations
        second,  // it is told: another one has passed
        forget,  // it is told: the image is gone
    };
    What what = What::kernel;
    ImageId image{};
    uint64_t handle = 0;
    uint64_t address = 0;
    std::string name{};
    NameSource source = NameSource::none; // of the text
    uint64_t device = 0, inode = 0;       // of the file
    bool scanner_is_free = false;
};

void fields(auto& each, same_as_const<NameQuestion> auto& q)
{
    each(q.what, q.image.pid, q.image.serial, q.handle, q.address, q.name, q.source, q.device, q.inode,
         q.scanner_is_free);
}

// A file that is to be scanned. Comes with a descriptor of it.
struct ScanWanted {
    uint64_t device = 0, inode = 0;
    std::string build_id{};
    uint64_t file_size = 0;
    pid_t pid = 0; // of a process that maps it
};

void fields(auto& each, same_as_const<ScanWanted> auto& w)
{
    each(w.device, w.inode, w.build_id, w.file_size, w.pid);
}

struct NameAnswer {
    ImageId image{};
    uint64_t handle = 0;
    std::string name{}; // readable; empty: none
    NameSource source = NameSource::none;
    uint64_t of = 0;      // hash of the question's name
    uint64_t learned = 0; // changes when what had no name may have one now
    std::optional<ScanWanted> wanted{};
};

void fields(auto& each, same_as_const<NameAnswer> auto& a)
{
    each(a.image.pid, a.image.serial, a.handle, a.name, a.source, a.of, a.learned, a.wanted);
}

// What StackNames and the helper that looks addresses up for it tell each other. A question has one answer each.
struct StackQuestion {
    static constexpr size_t addresses_max = 128;

    ImageId image{};
    std::vector<uint64_t> addresses{}; // none: the image is gone
    bool innermost = false;            // the first of them
};

void fields(auto& each, same_as_const<StackQuestion> auto& q)
{
    each(q.image.pid, q.image.serial, q.addresses, q.innermost);
}

struct StackAnswer {
    struct Frame {
        uint64_t address = 0;
        bool innermost = false;
        bool lasting = false; // as long as the generation is this one
        std::string text{};   // empty: there is no code there
    };
    static constexpr size_t text_max = 48 << 10; // bytes of one; then there is no room for more

    ImageId image{};
    uint64_t generation = 0;     // another one when the image's mappings have changed
    std::vector<Frame> frames{}; // as many as there was room for, at least one
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
