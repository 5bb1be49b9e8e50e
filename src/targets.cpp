// SPDX-License-Identifier: Apache-2.0
#include "targets.hpp"

#include "error.hpp"
#include "placement.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <sstream>
#include <sys/stat.h>
#include <unordered_map>

namespace gpusnoop {
namespace {

std::string_view base_name(std::string_view path)
{
    return path.substr(path.rfind('/') + 1);
}

// libcuda.so.1 and libcuda.so.<driver>, in the forward-compatibility folder and under WSL, too.
bool is_driver(std::string_view path)
{
    return base_name(path).starts_with("libcuda.so");
}

// libcudart.so.12 and what wheels make of it: libcudart-d0da41ae.so.11.0.
bool is_runtime(std::string_view path)
{
    std::string_view name = base_name(path);
    return name.starts_with("libcudart") && name.find(".so") != std::string_view::npos;
}

bool is_cuda(std::string_view path)
{
    return is_driver(path) || is_runtime(path);
}

// O_NONBLOCK: the path may be a FIFO by the time it is opened.
constexpr int open_flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

// A process may map as many files called libcuda.so as it likes; each costs us a descriptor and links.
constexpr size_t files_max = 512;
constexpr size_t boring_max = 1 << 17;

// Where drivers are installed: distributions, the container toolkits of GKE and the GPU operator, WSL, NixOS.
constexpr std::string_view driver_folders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib64",
    "/home/kubernetes/bin/nvidia/lib64",
};

// The folders of LD_LIBRARY_PATH that a process was started with; absolute ones, a few at most.
std::vector<std::string> library_path(pid_t pid)
{
    std::ifstream environment(fmt::format("/proc/{}/environ", pid), std::ios::binary);
    constexpr std::string_view name = "LD_LIBRARY_PATH=";
    std::vector<std::string> folders;
    for (std::string entry; std::getline(environment, entry, '\0');) {
        if (!entry.starts_with(name))
            continue;
        std::istringstream list(entry.substr(name.size()));
        for (std::string folder; std::getline(list, folder, ':') && folders.size() < 32;)
            if (folder.starts_with('/'))
                folders.push_back(folder);
    }
    return folders;
}

} // namespace

std::string CudaFile::open_path() const
{
    return fmt::format("/proc/self/fd/{}", file.get());
}

Fd open_mapped(pid_t pid, const Mapping& mapping)
{
    Fd file(open(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, mapping.start, mapping.end).c_str(), open_flags));
    struct stat st {};
    if (file && fstat(file.get(), &st) == 0 && S_ISREG(st.st_mode))
        return file;
    file = Fd(open(fmt::format("/proc/{}/root{}", pid, mapping.path).c_str(), open_flags));
    if (file && fstat(file.get(), &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == mapping.inode)
        return file;
    return {};
}

Targets::Targets(std::span<const Probe> probes, bool count_runtime) : probes_(probes), count_runtime_(count_runtime) {}

bool Targets::interesting(std::string_view path, uint64_t device, uint64_t inode) const
{
    return is_cuda(path) || (count_runtime_ && !boring_.contains({device, inode}));
}

std::vector<CudaFile*> Targets::files_of(pid_t pid)
{
    std::vector<CudaFile*> files;
    const std::vector<Mapping> all = mappings(pid);
    if (!count_runtime_ && std::ranges::none_of(all, [](const Mapping& m) { return is_cuda(m.path); }))
        return files;
    std::set<std::pair<uint64_t, uint64_t>> seen;
    for (const Mapping& mapping : all) {
        if (!mapping.executable || !mapping.inode)
            continue;
        // Addresses grow, and the kernel maps the executable below its libraries.
        const bool executable_itself = seen.empty();
        if (!seen.emplace(mapping.device, mapping.inode).second)
            continue;
        CudaFile* file = find_or_open(pid, mapping, executable_itself);
        if (file && std::ranges::find(files, file) == files.end())
            files.push_back(file);
    }
    return files;
}

CudaFile* Targets::find_or_open(pid_t pid, const Mapping& mapping, bool executable_itself)
{
    const std::pair key(mapping.device, mapping.inode);
    if (!is_cuda(mapping.path) && boring_.contains(key))
        return nullptr;
    Fd file = open_mapped(pid, mapping);
    if (!file)
        return nullptr; // the process has gone or has unmapped it
    CudaFile* found = add(pid, std::move(file), mapping, executable_itself);
    if (boring_.size() >= boring_max)
        boring_.clear();
    if (!found)
        boring_.insert(key);
    return found;
}

std::vector<CudaFile*> Targets::drivers_in_reach(pid_t pid)
{
    std::vector<std::string> folders(std::begin(driver_folders), std::end(driver_folders));
    for (std::string& folder : library_path(pid))
        folders.push_back(std::move(folder));
    std::vector<CudaFile*> files;
    for (const std::string& folder : folders) {
        Mapping mapping;
        mapping.path = folder + "/libcuda.so.1";
        Fd file(open(fmt::format("/proc/{}/root{}", pid, mapping.path).c_str(), open_flags));
        struct stat st {};
        if (!file || fstat(file.get(), &st) || !S_ISREG(st.st_mode))
            continue;
        CudaFile* found = add(pid, std::move(file), mapping, false);
        if (found && std::ranges::find(files, found) == files.end())
            files.push_back(found);
    }
    return files;
}

// Null where the file has no function to probe. Files stay known, and open, for the whole run.
CudaFile* Targets::add(pid_t pid, Fd file, const Mapping& mapping, bool executable_itself)
{
    const FileId id = ids_.of(file.get());
    if (auto known = files_.find(id); known != files_.end())
        return known->second->places.empty() ? nullptr : known->second.get();
    if (files_.size() >= files_max)
        return nullptr;
    Fd kept(fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
    std::unique_ptr<CudaFile> examined;
    try {
        examined = examine(std::move(file), mapping, executable_itself);
        if (!examined)
            return nullptr;
    } catch (const Error& error) {
        complain(fmt::format("{} (process {}): {}", mapping.path, pid, error.what()));
        examined = std::make_unique<CudaFile>(); // known, and of no use
    }
    examined->file = std::move(kept);
    examined->id = id;
    CudaFile* found = examined.get();
    if (found->places.empty()) {
        found = nullptr;
        if (!examined->missing.empty())
            complain(fmt::format("{} (process {}): defines none of the {} functions looked for", mapping.path, pid,
                                 examined->missing.size()));
    }
    files_.emplace(id, std::move(examined));
    return found;
}

// Null where the file has nothing to do with CUDA.
std::unique_ptr<CudaFile> Targets::examine(Fd file, const Mapping& mapping, bool executable_itself)
{
    const bool named = is_cuda(mapping.path);
    std::optional<Elf> opened;
    try {
        opened.emplace(std::move(file));
    } catch (const Error&) {
        if (named)
            throw;
        return nullptr; // a file of data, or one that we need not understand
    }
    const Elf& elf = *opened;
    auto found = std::make_unique<CudaFile>();
    found->path = mapping.path + (mapping.deleted ? " [deleted]" : "");
    if (is_driver(mapping.path)) {
        locate(*found, elf, any_runtime);
        return found;
    }
    found->library = Library::runtime;
    if (named) {
        locate(*found, elf, runtime_of(elf.soname()));
        return found;
    }
    // nvcc links the runtime statically unless told otherwise: into executables and into libraries, both of which then
    // carry device code.
    if (!executable_itself && !elf.has_section(".nvFatBinSegment") && !elf.has_section(".nv_fatbin"))
        return nullptr;
    locate(*found, elf, any_runtime);
    return found->places.empty() ? nullptr : std::move(found);
}

void Targets::locate(CudaFile& file, const Elf& elf, Runtime runtime)
{
    std::unordered_map<std::string_view, unsigned> wanted;
    std::vector<std::string_view> names;
    for (unsigned i = 0; i < probes_.size(); i++) {
        const Probe& probe = probes_[i];
        if (probe.library == file.library && applies(probe, runtime)) {
            wanted.emplace(probe.symbol, i);
            names.push_back(probe.symbol);
        }
    }
    std::set<std::string_view> defined;
    std::set<uint64_t> taken; // two names of one function are one probe
    for (const Symbol& symbol : elf.functions(names)) {
        auto row = wanted.find(symbol.name);
        if (row == wanted.end())
            continue;
        defined.insert(row->first);
        if (!taken.insert(symbol.file_offset).second)
            continue;
        const Placement placement =
            place(elf.bytes(symbol.file_offset, symbol.size ? std::min<size_t>(symbol.size, 32) : 32));
        file.places.push_back({row->second, symbol.file_offset + placement.delta, placement.delta, placement.emulated});
    }
    for (std::string_view name : names)
        if (!defined.contains(name))
            file.missing.emplace_back(name);
}

} // namespace gpusnoop
