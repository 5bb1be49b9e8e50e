// SPDX-License-Identifier: Apache-2.0
// Which files to probe, and where in them: CUDA libraries among the mappings of processes. A file is always opened
// through the process that maps it, and is one target however many paths, mounts and containers lead to it.
#pragma once

#include "elf.hpp"
#include "file_id.hpp"
#include "probes.hpp"
#include "process.hpp"

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

// One function of the probe table in one file.
struct Place {
    unsigned probe = 0;  // index into the tool's probes
    uint64_t offset = 0; // in the file, where the probe goes
    uint64_t delta = 0;  // how far that is behind the function's first byte
    bool emulated = false;
};

struct CudaFile {
    std::string path; // as the process that first showed it sees it; "[deleted]" at the end where it is gone
    FileId id;
    Library library = Library::driver;
    Fd file; // keeps the inode, so its number is not given to another file
    std::vector<Place> places;
    std::vector<std::string> missing; // functions of the table that this file does not define

    std::string open_path() const; // a path that leads to this very file, in this process
};

class Targets {
public:
    // probes: what to look for; must outlive the object. count_runtime: the runtime's probes count calls, so files with
    // a runtime in them are looked for in every process; else they only teach names, and processes without a driver
    // are passed over.
    Targets(std::span<const Probe> probes, bool count_runtime);

    // The CUDA files that this process maps executable right now. Pointers stay valid.
    std::vector<CudaFile*> files_of(pid_t pid);

    // The drivers that a process would load from the usual places, though it does not map them yet: probes that are
    // there before the library is mapped miss nothing.
    std::vector<CudaFile*> drivers_in_reach(pid_t pid);

    // True where this mapping (device and inode as /proc shows them) may bring a CUDA file into its process.
    bool interesting(std::string_view path, uint64_t device, uint64_t inode) const;

    // Why a file could not be used, once per file.
    const std::vector<std::string>& complaints() const { return complaints_; }
    void complain(std::string why) { complaints_.push_back(std::move(why)); }

private:
    CudaFile* find_or_open(pid_t pid, const Mapping& mapping, bool executable_itself);
    CudaFile* add(pid_t pid, Fd file, const Mapping& mapping, bool executable_itself);
    std::unique_ptr<CudaFile> examine(Fd file, const Mapping& mapping, bool executable_itself);
    void locate(CudaFile& file, const Elf& elf, Runtime runtime);

    std::span<const Probe> probes_;
    bool count_runtime_;
    FileIds ids_;
    std::map<FileId, std::unique_ptr<CudaFile>> files_;
    std::set<std::pair<uint64_t, uint64_t>> boring_; // device and inode of files without CUDA in them
    std::vector<std::string> complaints_;
};

// Opens the file behind a mapping of a process, and no other: through map_files, else through the process' root where
// that still leads to the same inode. Empty where neither works.
Fd open_mapped(pid_t pid, const Mapping& mapping);

} // namespace gpusnoop
