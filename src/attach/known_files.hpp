// SPDX-License-Identifier: Apache-2.0
// The CUDA files that are known, each once, however many processes map it; and those known to be of no use.
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

// What is not traced, and why, in sentences; no more of them than anybody reads.
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

// A file with CUDA functions in it, and where.

// One function of the probe table in one file.
struct Place {
    unsigned probe = 0;  // index into the tool's probes
    uint64_t offset = 0; // in the file, where the probe goes
    uint64_t delta = 0;  // how far that is behind the function's first byte
    bool emulated = false;
};

inline constexpr std::string_view deleted_suffix = " [deleted]";

struct CudaFile {
    uint32_t number = 0; // from 1 on, never given twice
    std::string path;    // as the process that first showed it sees it; "[deleted]" at the end where it is gone
    FileId id;
    Library library = Library::driver;
    uint32_t cookie_word = 0; // that its probes have in their cookies (bpf/shared/probe.h)
    // Keeps the inode, so that its number is not given to another file. O_PATH where the file system may block; else
    // open for reading, for the guard.
    Fd file;
    FileGuard guard{};
    bool suspended = false;                                // without probes, until its bytes have been examined again
    bool examining = false;                                // they are now
    FileGuard::Clock::time_point suspended_at, examine_at; // examine_at: not before
    unsigned times_suspended = 0, times_reported = 0;
    unsigned helpers_lost = 0; // while they examined it again
    std::vector<Place> places;
    std::vector<std::string> missing; // functions of the table that this file does not define
    std::set<pid_t> users;            // that map it, or have and live
    uint64_t owner = 0;               // of the process that first showed it: owner_of()
    uint64_t mount_namespace = 0;     // of the last one that did

    bool is_driver() const { return library == Library::driver || library == Library::hip; }
    std::string open_path() const; // a path that leads to this very file, in this process
};

class KnownFiles {
public:
    // A process may map as many files called libcuda.so as it likes, and each costs us descriptors and links.
    static constexpr size_t files_max = 1024;
    static constexpr size_t files_of_owner_max = 512; // one user leaves as many to others
    static constexpr size_t files_of_process_max = 64;

    explicit KnownFiles(Complaints& complaints) : complaints_(complaints) {}

    CudaFile* find(const FileId& id) const; // null: it is not known
    CudaFile* by_number(uint32_t number) const;
    std::vector<CudaFile*> all() const;
    // Whether there may be one more of this process and owner; once for each of them it is told where not.
    bool has_room(pid_t pid, uint64_t owner);
    CudaFile& add(std::unique_ptr<CudaFile> file); // gives it its number; valid until it is dropped
    void drop(CudaFile* file);
    bool move(CudaFile* file, const FileId& id);  // false: another one is known by that
    uint32_t dropped() const { return dropped_; } // or moved, so far
    bool nearly_full() const { return files_.size() > files_max * 3 / 4; }

    // Those that no living process has mapped, neither now nor when this was asked last.
    std::vector<CudaFile*> idle();

    // A file as it was when it was looked at; without a descriptor it may become another one.
    struct Version {
        FileId id;
        int64_t changed_ns = 0;
        auto operator<=>(const Version&) const = default;
    };
    // Called like CUDA, with nothing to probe in it.
    bool is_useless(const Version& version) const { return useless_.contains(version); }
    void add_useless(const Version& version);

private:
    Complaints& complaints_;
    std::map<FileId, std::unique_ptr<CudaFile>> files_;
    uint32_t numbers_ = 0, dropped_ = 0;
    std::set<CudaFile*> idle_; // at the last look
    std::set<Version> useless_;
    std::set<std::pair<bool, uint64_t>> limits_reported_; // processes (false) and owners that have been complained of
};

} // namespace gpusnoop
