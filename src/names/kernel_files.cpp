// SPDX-License-Identifier: Apache-2.0
#include "names/kernel_files.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "names/registration_scan.hpp"
#include "proc/mapped_file.hpp"

#include <algorithm>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <set>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

namespace {

constexpr size_t max_open_files = 256;
constexpr size_t seen_max = 65536; // at this size, KernelFiles::seen_ is cleared, and all files are examined again
constexpr size_t wanted_max = 64;  // queued scans; limited because a process may map any number of files
constexpr size_t max_registered_name = 16 << 10;
constexpr uint64_t max_names_bytes = 32 << 20; // total bytes of the kernel names in a file; PyTorch 2.6 has 8 MB

} // namespace

std::string KernelFile::registered(uint64_t stub) const
{
    const Registration* const found = registrations.kernel(stub);
    return found ? registered_name(image, *found) : std::string();
}

const std::unordered_set<size_t>& KernelFile::names() const
{
    if (!names_.empty())
        return names_;
    uint64_t bytes = 0;
    for (const Registration& r : registrations.kernels) {
        const std::string name = image.string_at(r.name, max_registered_name);
        bytes += name.empty() ? max_registered_name : name.size();
        if (bytes > max_names_bytes)
            break;
        names_.insert(std::hash<std::string>()(name));
    }
    return names_;
}

KernelFile* KernelFiles::open(pid_t pid, const Mapping& mapping)
{
    const Key key(mapping.device, mapping.inode);
    if (auto known = files_.find(key); known != files_.end()) {
        known->second.users.insert(pid);
        return known->second.file.get();
    }
    Fd file = open_mapped(pid, mapping);
    if (!file)
        return nullptr;
    if (files_.size() >= max_open_files) {
        files_.clear();
        seen_.clear();
    }
    std::unique_ptr<KernelFile> opened;
    try {
        opened = std::make_unique<KernelFile>(std::move(file));
    } catch (const Error&) {
        opened = nullptr; // not an ELF file but, for example, device memory or a font
    }
    return files_.insert_or_assign(key, Known{std::move(opened), mapping.path, {pid}}).first->second.file.get();
}

const KernelFile* KernelFiles::known(const Mapping& mapping) const
{
    const auto file = files_.find({mapping.device, mapping.inode});
    return file != files_.end() ? file->second.file.get() : nullptr;
}

void KernelFiles::scan(pid_t pid, const std::vector<Mapping>& mappings,
                       const std::function<void(const Mapping&)>& before)
{
    for (const Mapping& mapping : mappings) {
        const Key key(mapping.device, mapping.inode);
        if (!mapping.executable || !mapping.inode || wanted_.size() >= wanted_max || seen_.contains(key))
            continue;
        if (seen_.size() >= seen_max)
            seen_.clear();
        before(mapping);
        Fd file = open_mapped(pid, mapping);
        if (!file)
            continue; // the file may have been unmapped
        seen_.insert(key);
        try {
            // nvcc and clang put the headers of embedded device code into these sections.
            const Elf elf(Fd(fcntl(file.get(), F_DUPFD_CLOEXEC, 0)));
            if (!elf.has_section(".nvFatBinSegment") && !elf.has_section(".hipFatBinSegment"))
                continue;
        } catch (const Error&) {
            continue;
        }
        if (const KernelFile* const known = open(pid, mapping))
            wanted_.push_back({{.device = mapping.device,
                                .inode = mapping.inode,
                                .build_id = known->build_id,
                                .file_size = known->elf.file_size(),
                                .pid = pid},
                               std::move(file)});
    }
}

bool KernelFiles::scanned(const Key& key, Registrations registrations)
{
    std::erase_if(wanted_, [&](const Wanted& wanted) { return Key(wanted.scan.device, wanted.scan.inode) == key; });
    const auto known = files_.find(key);
    if (known == files_.end() || !known->second.file)
        return false;
    known->second.file->registrations = std::move(registrations);
    return !known->second.file->registrations.kernels.empty();
}

void KernelFiles::close_unused()
{
    for (auto entry = files_.begin(); entry != files_.end();) {
        auto& [key, known] = *entry;
        std::erase_if(known.users, [](pid_t pid) { return start_time_ns(pid) == 0; });
        const bool was_idle = std::exchange(known.idle, known.users.empty());
        if (known.idle && was_idle && !leads_to(getpid(), known.path, key.second)) {
            seen_.erase(key);
            entry = files_.erase(entry);
        } else {
            ++entry;
        }
    }
}

KernelSymbols::KernelSymbols(std::istream& text)
{
    constexpr std::string_view code = "tTwW";
    for (std::string line; std::getline(text, line);) {
        std::string_view rest = line; // "ffffffff81000000 t name"
        const uint64_t address = consume_number<uint64_t>(rest, 16).value_or(0);
        if (!address || rest.size() < 4 || rest[0] != ' ' || rest[2] != ' ' ||
            code.find(rest[1]) == std::string_view::npos)
            continue;
        symbols_.push_back({address, static_cast<uint32_t>(names_.size())});
        names_ += rest.substr(3, rest.find('\t') - 3);
        names_ += '\0';
    }
    std::ranges::sort(symbols_, {}, &Symbol::address);
}

KernelSymbols KernelSymbols::of_this_kernel()
{
    std::ifstream text("/proc/kallsyms");
    return KernelSymbols(text);
}

const KernelSymbols::Symbol* KernelSymbols::find(uint64_t address) const
{
    constexpr uint64_t longest = 1 << 20; // maximum distance in bytes between an address and the start of its symbol
    const auto next = std::ranges::upper_bound(symbols_, address, {}, &Symbol::address);
    if (next == symbols_.begin() || address - std::prev(next)->address > longest)
        return nullptr;
    return &*std::prev(next);
}

std::vector<std::string> KernelSymbols::frames(std::span<const uint64_t> addresses) const
{
    constexpr std::string_view scheduler = "__schedule";
    std::vector<std::string> frames;
    for (const uint64_t address : addresses) {
        const Symbol* symbol = find(address);
        const char* const name = symbol ? &names_[symbol->name] : "";
        frames.push_back(symbol ? fmt::format("{}+{:#x} (kernel)", name, address - symbol->address)
                                : fmt::format("{:#x} (kernel)", address));
        if (name == scheduler)
            frames.clear();
    }
    return frames;
}

} // namespace gpusnoop
