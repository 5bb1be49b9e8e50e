// SPDX-License-Identifier: Apache-2.0
// Files that processes map, as sources of kernel names: their symbols, and the kernel registrations that a scan has
// found in their code.
#pragma once

#include "code/elf.hpp"
#include "code/elf_image.hpp"
#include "names/name_messages.hpp"
#include "names/registrations.hpp"
#include "proc/process.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <istream>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace gpusnoop {

class KernelFile {
public:
    explicit KernelFile(Fd file) : elf(std::move(file)), image(elf), build_id(elf.build_id()) {}

    // The (mangled) name of the kernel that is registered for the stub at this address; empty if there is none.
    std::string registered(uint64_t stub) const;

    // Hashes of the names of all registered kernels.
    const std::unordered_set<size_t>& names() const;

    Elf elf;
    ElfImage image;
    std::string build_id;
    Registrations registrations; // empty until the file has been scanned

private:
    mutable std::unordered_set<size_t> names_;
};

class KernelFiles {
public:
    using Key = std::pair<uint64_t, uint64_t>; // device and inode

    // Returns null if the file cannot be opened or is not an ELF file.
    KernelFile* open(pid_t pid, const Mapping& mapping);

    // As open(), but also null if the file is not open yet.
    const KernelFile* known(const Mapping& mapping) const;

    // Queues scans of those files of the process that contain GPU code and have not been scanned. before: called before
    // a file is opened.
    void scan(pid_t pid, const std::vector<Mapping>& mappings, const std::function<void(const Mapping&)>& before);

    // The next file to scan, until scanned() is called for it; null if there is none.
    struct Wanted {
        ScanWanted scan;
        Fd file;
    };
    const Wanted* wanted() const { return wanted_.empty() ? nullptr : &wanted_.front(); }
    // Stores the result of a scan. Returns true if the file registers kernels.
    bool scanned(const Key& key, Registrations registrations);

    // Closes files that no process uses and that no longer exist at their path, because their file system may have to
    // be unmounted. Files that still exist stay open, because the next process may map them.
    void close_unused();

private:
    struct Known {
        std::unique_ptr<KernelFile> file; // null if the file is not an ELF file
        std::string path;                 // as seen by the first process that mapped it
        std::set<pid_t> users;
        bool idle = false; // no process used it at the last check
    };

    std::map<Key, Known> files_;
    std::set<Key> seen_; // files that scan() has examined
    std::deque<Wanted> wanted_;
};

// Symbolizer of kernel addresses, from /proc/kallsyms: "do_nanosleep+0x5c (kernel)".
class KernelSymbols {
public:
    KernelSymbols() = default;
    // text: lines of "ffffffff81234560 t name[\t[module]]". Symbols that are not code are skipped.
    explicit KernelSymbols(std::istream& text);
    static KernelSymbols of_this_kernel();

    // The frames at these addresses, innermost first. Frames up to __schedule() are left out, because they belong to
    // the tracer. Addresses without a name are shown as "0x..."; with kptr_restrict, no address has a name.
    std::vector<std::string> frames(std::span<const uint64_t> addresses) const;

private:
    struct Symbol {
        uint64_t address;
        uint32_t name; // offset in names_, zero-terminated
    };
    const Symbol* find(uint64_t address) const;

    std::vector<Symbol> symbols_; // by address
    std::string names_;
};

} // namespace gpusnoop
