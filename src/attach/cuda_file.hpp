// SPDX-License-Identifier: Apache-2.0
// A file with CUDA functions in it, and where.
#pragma once

#include "attach/file_guard.hpp"
#include "attach/probes.hpp"
#include "base/fd.hpp"
#include "proc/mapped_file.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

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
    uint32_t word = 0; // that its probes have in their cookies (bpf/shared/attach.h)
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

} // namespace gpusnoop
