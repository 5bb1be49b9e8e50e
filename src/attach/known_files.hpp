// SPDX-License-Identifier: Apache-2.0
// The CUDA files that are known, each once, however many processes map it; and those known to be of no use.
#pragma once

#include "attach/complaints.hpp"
#include "attach/cuda_file.hpp"
#include "proc/mapped_file.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpusnoop {

class KnownFiles {
public:
    // A process may map as many files called libcuda.so as it likes, and each costs us descriptors and links.
    static constexpr size_t files_max = 1024;
    static constexpr size_t files_of_owner_max = 512; // one user leaves as many to others
    static constexpr size_t files_of_process_max = 64;

    explicit KnownFiles(Complaints& complaints) : complaints_(complaints) {}

    CudaFile* find(const FileId& id) const; // null: it is not known
    CudaFile* numbered(uint32_t number) const;
    std::vector<CudaFile*> all() const;
    // Whether there may be one more of this process and owner; once for each of them it is told where not.
    bool room_for_one(pid_t pid, uint64_t owner);
    CudaFile& add(std::unique_ptr<CudaFile> file); // gives it its number; valid until it is dropped
    void drop(CudaFile* file);
    bool move(CudaFile* file, const FileId& id);  // false: another one is known by that
    uint32_t dropped() const { return dropped_; } // or moved, so far
    bool nearly_full() const { return files_.size() > files_max * 3 / 4; }

    // Those that no living process has mapped, neither now nor when this was asked last.
    std::vector<CudaFile*> idle();

    // A file as it was when it was looked at; without a descriptor it may become another one.
    struct Seen {
        FileId id;
        int64_t changed_ns = 0;
        auto operator<=>(const Seen&) const = default;
    };
    // Called like CUDA, with nothing to probe in it.
    bool useless(const Seen& seen) const { return useless_.contains(seen); }
    void add_useless(const Seen& seen);

private:
    Complaints& complaints_;
    std::map<FileId, std::unique_ptr<CudaFile>> files_;
    uint32_t numbers_ = 0, dropped_ = 0;
    std::set<CudaFile*> idle_; // at the last look
    std::set<Seen> useless_;
    std::set<std::pair<bool, uint64_t>> over_limit_; // processes (false) and owners that have been complained of
};

} // namespace gpusnoop
