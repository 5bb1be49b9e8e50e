// SPDX-License-Identifier: Apache-2.0
// Registry of CUDA files: one entry per file, however many processes map it. Also remembers files without functions to
// probe.
#pragma once

#include "attach/file_guard.hpp"
#include "attach/probes.hpp"
#include "base/fd.hpp"
#include "proc/mapped_file.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpusnoop {

// List of messages about files that cannot be traced, limited in length.
class Complaints {
public:
    static constexpr size_t max = 256;

    void add(std::string why)
    {
        if (all_.size() < max)
            all_.push_back(std::move(why));
        else if (all_.size() == max)
            all_.emplace_back("more libraries cannot be traced; they are not listed");
    }
    const std::vector<std::string>& all() const { return all_; }

private:
    std::vector<std::string> all_;
};

// Place in a file at which a function of the probe table is probed.
struct Place {
    unsigned probe = 0;    // index into the tool's probes
    uint64_t offset = 0;   // file offset of the probe
    uint64_t delta = 0;    // bytes from the function's start to the probe
    bool emulated = false; // true if the kernel emulates the probed instruction
};

inline constexpr std::string_view deleted_suffix = " [deleted]";

// A file with CUDA functions to probe.
struct CudaFile {
    uint32_t number = 0; // starts at 1; never reused
    std::string path;    // as seen by the first process found to map it; ends in deleted_suffix if the file was deleted
    FileId id;
    Library library = Library::driver;
    uint32_t cookie_word = 0; // included in the cookie of each probe of this file (bpf/shared/probe.h)
    // Kept open so that the inode number is not reused. Open for reading if the guard has a lease. Else opened with
    // O_PATH, which cannot block in the file system.
    Fd file;
    FileGuard guard{};
    bool suspended = false; // a writer has opened the file, so it has no probes until a helper has reexamined it
    bool examining = false; // true while a helper reexamines it
    FileGuard::Clock::time_point suspended_at, examine_at; // examine_at: earliest time to reexamine it
    unsigned times_suspended = 0, times_reported = 0;
    unsigned helpers_lost = 0; // helpers that hung or crashed while reexamining it
    std::vector<Place> places;
    std::vector<std::string> missing; // functions of the probe table that this file does not define
    std::set<pid_t> users;            // running processes that map it or have mapped it
    uint64_t owner = 0;               // user or container (owner_of()) of the first process found to map it
    uint64_t mount_namespace = 0;     // mount namespace of the last process found to map it

    bool is_driver() const { return library == Library::driver || library == Library::hip; }
    std::string open_path() const; // path by which gpusnoop can open the file, even if it is deleted
};

class KnownFiles {
public:
    // Limits, needed because a process can map any number of files named libcuda.so, and each probed file costs
    // descriptors and links.
    static constexpr size_t files_max = 1024;
    static constexpr size_t files_of_owner_max = 512; // leaves half of files_max to other users
    static constexpr size_t files_of_process_max = 64;

    explicit KnownFiles(Complaints& complaints) : complaints_(complaints) {}

    CudaFile* find(const FileId& id) const; // null if unknown
    CudaFile* by_number(uint32_t number) const;
    std::vector<CudaFile*> all() const;
    // Returns true if the limits allow another file of this process and owner. Reports each exceeded limit once.
    bool has_room(pid_t pid, uint64_t owner);
    CudaFile& add(std::unique_ptr<CudaFile> file); // sets the file's number; the reference is valid until drop()
    void drop(CudaFile* file);
    bool move(CudaFile* file, const FileId& id);  // sets a new id; returns false if the id belongs to another file
    uint32_t dropped() const { return dropped_; } // number of files dropped or moved so far
    bool nearly_full() const { return files_.size() > files_max * 3 / 4; }

    // Returns the files that had no running user at the previous call of this function and still have none.
    std::vector<CudaFile*> idle();

    // Version of a file. changed_ns is needed because the inode number of a file that is not kept open can be reused.
    struct Version {
        FileId id;
        int64_t changed_ns = 0;
        auto operator<=>(const Version&) const = default;
    };
    // True for a file with a CUDA library's name and no functions to probe.
    bool is_useless(const Version& version) const { return useless_.contains(version); }
    void add_useless(const Version& version);

private:
    Complaints& complaints_;
    std::map<FileId, std::unique_ptr<CudaFile>> files_;
    uint32_t numbers_ = 0, dropped_ = 0;
    std::set<CudaFile*> idle_; // files that had no user at the last call of idle()
    std::set<Version> useless_;
    // Limits already reported: {true, owner} for the limit per owner, {false, process id} for the limit per process,
    // and {false, 0} for the total.
    std::set<std::pair<bool, uint64_t>> limits_reported_;
};

} // namespace gpusnoop
