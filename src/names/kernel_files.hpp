// SPDX-License-Identifier: Apache-2.0
// Files that processes map, for the names of their kernels: symbols, and what a scan of the code has found.
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

    // Mangled, of the kernel that the stub at this address is registered for; empty where none is.
    std::string registered(uint64_t stub) const;

    // Hashes of the names of all kernels that are registered.
    const std::unordered_set<size_t>& names() const;

    Elf elf;
    ElfImage image;
    std::string build_id;
    Registrations registrations; // empty until they are known

private:
    mutable std::unordered_set<size_t> names_;
};

class KernelFiles {
public:
    using Key = std::pair<uint64_t, uint64_t>; // device and inode

    // Null where it is no ELF file or cannot be opened.
    KernelFile* of(pid_t pid, const Mapping& mapping);

    // The same, if it has been opened before.
    const KernelFile* known(const Mapping& mapping) const;

    // Has those of a process scanned that have code for GPUs in them, each once. before: called with each.
    void scan(pid_t pid, const std::vector<Mapping>& mappings, const std::function<void(const Mapping&)>& before);

    // The next one that is to be scanned, until that is so; null where there is none.
    struct Wanted {
        ScanWanted scan;
        Fd file;
    };
    const Wanted* wanted() const { return wanted_.empty() ? nullptr : &wanted_.front(); }
    // What has been found. True where that is any.
    bool scanned(const Key& key, Registrations registrations);

    // Closes what no process uses and no path of ours leads to any more: its file system may be about to go. What a
    // path does lead to stays, for the next process may map it.
    void let_go();

private:
    struct Known {
        std::unique_ptr<KernelFile> file; // null: unusable
        std::string path;                 // as the process that showed it first sees it
        std::set<pid_t> users;
        bool idle = false; // since the last look
    };

    std::map<Key, Known> files_;
    std::set<Key> seen_; // by scan()
    std::deque<Wanted> wanted_;
};

// Addresses of the kernel's stack -> "do_nanosleep+0x5c (kernel)", by /proc/kallsyms.
class KernelSymbols {
public:
    KernelSymbols() = default;
    // Of that text: "ffffffff81234560 t name[\t[module]]" in each line; what is no code is left out.
    explicit KernelSymbols(std::istream& text);
    static KernelSymbols of_this_kernel();

    // Innermost first, from where the thread leaves its CPU on: who has taken the stack is no part of it. What has no
    // name, as where kptr_restrict hides all, is "0x...".
    std::vector<std::string> frames(std::span<const uint64_t> addresses) const;

private:
    struct Symbol {
        uint64_t address;
        uint32_t name; // in names_, up to a zero
    };
    const Symbol* find(uint64_t address) const;

    std::vector<Symbol> symbols_; // by address
    std::string names_;
};

} // namespace gpusnoop
