// SPDX-License-Identifier: Apache-2.0
// What scans have found, kept on disk by build-id. Nobody else may write there; what is read is checked all the same,
// and each entry once more against the file it is about (registered_name()).
#pragma once

#include "base/fd.hpp"
#include "names/registrations.hpp"
#include "reader/message.hpp"
#include "reader/reader.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpusnoop {

class ScanCache {
public:
    // The folder is made when there is something to keep. Without one (empty path), or where it is not ours alone,
    // nothing is found and nothing kept.
    explicit ScanCache(std::string folder) : path_(std::move(folder)) {}

    // $CACHE_DIRECTORY (systemd), else /var/cache/gpusnoop for root, else $XDG_CACHE_HOME/gpusnoop or
    // ~/.cache/gpusnoop.
    static std::string default_folder();

    std::optional<Registrations> find(std::string_view build_id, uint64_t file_size) const;
    void keep(std::string_view build_id, uint64_t file_size, const Registrations& registrations) const;

    // Files that a process was writing when it was killed. How many they were.
    unsigned remove_unfinished() const;

    static constexpr uint64_t size_max = 64 << 20; // bytes in the folder: the oldest go
    static constexpr size_t files_max = 4096;

private:
    Fd folder() const; // empty where it cannot be used

    std::string path_;
};

// Scans of files for registrations of kernels. The tracing thread cannot wait for a library of a gigabyte on a slow
// disk, and the file is hostile, so a helper scans it without privileges, with little time, and its answer is checked.

// One scan at a time.
class Scanner {
public:
    Scanner();

    // Files of the process are not scanned any more.
    bool is_blocked(pid_t about) { return reader_.is_blocked(about); }
    // about: a process that maps the file. Returns false if no helper takes it now.
    bool begin(pid_t about, const Fd& file);
    // True once the scan has ended; it is ended if it takes too long. Never waits.
    bool ended();
    // The answer, once that is so; nullopt if there is none.
    const std::optional<Registrations>& answer() const { return answer_; }

private:
    bool is_busy_ = false;
    std::optional<Registrations> answer_;
    JoinedParts parts_;
    Reader reader_;
};

} // namespace gpusnoop
