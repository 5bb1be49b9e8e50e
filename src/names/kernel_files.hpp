// SPDX-License-Identifier: Apache-2.0
// Files mapped by processes, as sources of kernel names. Names come from symbols, and from the kernel registrations
// that a scan has found in the code.
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

    // Returns the (mangled) name of the kernel registered for the stub at this address, or an empty string.
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

    // Like open(), but returns null if the file is not open yet.
    const KernelFile* known(const Mapping& mapping) const;

    // Queues a scan of each mapped file that contains GPU code and has not been scanned. Calls before() before opening
    // a file.
    void scan(pid_t pid, const std::vector<Mapping>& mappings, const std::function<void(const Mapping&)>& before);

    // wanted() returns the same file until scanned() is called for it, or null if no file needs a scan.
    struct Wanted {
        ScanWanted scan;
        Fd file;
    };
    const Wanted* wanted() const { return wanted_.empty() ? nullptr : &wanted_.front(); }
    // Stores the result of a scan. Returns true if the file registers kernels.
    bool scanned(const Key& key, Registrations registrations);

    // Closes files that no process uses and that no longer exist at their path: an open file would prevent its file
    // system from being unmounted. Files that still exist stay open, because another process may map them soon.
    void close_unused();

private:
    struct Known {
        std::unique_ptr<KernelFile> file; // null if the file is not an ELF file
        std::string path;                 // the file's path in the first process that mapped it
        std::set<pid_t> users;
        bool idle = false; // no process used the file at the last check
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

    // Returns the frames at these addresses, innermost first. Omits the frames up to and including __schedule(),
    // because they belong to the tracer. Addresses without a name are shown as "0x..."; if kptr_restrict hides the
    // symbols' addresses, no address has a name.
    std::vector<std::string> frames(std::span<const uint64_t> addresses) const;

private:
    struct Symbol {
        uint64_t address;
        uint32_t name; // offset in names_, zero-terminated
    };
    const Symbol* find(uint64_t address) const;

    std::vector<Symbol> symbols_; // sorted by address
    std::string names_;
};

} // namespace gpusnoop
