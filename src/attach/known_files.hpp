// SPDX-License-Identifier: Apache-2.0
// Registry of CUDA files: one entry per file, however many processes map it. Also remembers files without probes.
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

// Messages about files that cannot be traced; capped.
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
    unsigned probe = 0;  // index into the tool's probes
    uint64_t offset = 0; // file offset of the probe
    uint64_t delta = 0;  // from the function's first byte to the probe
    bool emulated = false;
};

inline constexpr std::string_view deleted_suffix = " [deleted]";

// A file with CUDA functions to probe.
struct CudaFile {
    uint32_t number = 0; // starts at 1; never reused
    std::string path;    // as seen by the first process found to map it; ends in deleted_suffix if deleted
    FileId id;
    Library library = Library::driver;
    uint32_t cookie_word = 0; // part of its probes' cookies (bpf/shared/probe.h)
    // Held open so that the inode number is not reused. Opened for reading if the guard has a lease, else with O_PATH,
    // because the file system might block.
    Fd file;
    FileGuard guard{};
    bool suspended = false;                                // has no probes until a helper has reexamined it
    bool examining = false;                                // a helper is reexamining it
    FileGuard::Clock::time_point suspended_at, examine_at; // examine_at: earliest time to reexamine it
    unsigned times_suspended = 0, times_reported = 0;
    unsigned helpers_lost = 0; // helpers that hung or crashed while reexamining it
    std::vector<Place> places;
    std::vector<std::string> missing; // functions of the probe table that this file does not define
    std::set<pid_t> users;            // running processes that map it or have mapped it
    uint64_t owner = 0;               // owner_of() the first process found to map it
    uint64_t mount_namespace = 0;     // of the last process found to map it

    bool is_driver() const { return library == Library::driver || library == Library::hip; }
    std::string open_path() const; // path of this file in this process, even if it is deleted
};

class KnownFiles {
public:
    // Limits are needed because a process can map any number of files named libcuda.so, and each needs descriptors and
    // links.
    static constexpr size_t files_max = 1024;
    static constexpr size_t files_of_owner_max = 512; // leaves half of files_max to other users
    static constexpr size_t files_of_process_max = 64;

    explicit KnownFiles(Complaints& complaints) : complaints_(complaints) {}

    CudaFile* find(const FileId& id) const; // null: unknown
    CudaFile* by_number(uint32_t number) const;
    std::vector<CudaFile*> all() const;
    // Returns true if the limits allow another file of this process and owner. Reports each exceeded limit once.
    bool has_room(pid_t pid, uint64_t owner);
    CudaFile& add(std::unique_ptr<CudaFile> file); // sets its number; valid until drop()
    void drop(CudaFile* file);
    bool move(CudaFile* file, const FileId& id);  // false: the id belongs to another file
    uint32_t dropped() const { return dropped_; } // files dropped or moved so far
    bool nearly_full() const { return files_.size() > files_max * 3 / 4; }

    // Files that no running process maps, neither now nor at the previous call.
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
    std::set<CudaFile*> idle_; // result of the last call of idle(), and files that became idle then
    std::set<Version> useless_;
    std::set<std::pair<bool, uint64_t>> limits_reported_; // true: owner, false: process
};

} // namespace gpusnoop
