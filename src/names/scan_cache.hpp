// SPDX-License-Identifier: Apache-2.0
// On-disk cache of scan results, by build-id. Other users cannot write to it. Nevertheless, entries are validated, and
// each registration is checked against its file before use (registered_name()).
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
    // folder: path of a folder, which is created when the first entry is written. Nothing is cached if the path is
    // empty or if other users can access the folder.
    explicit ScanCache(std::string folder) : path_(std::move(folder)) {}

    // Returns $CACHE_DIRECTORY (set by systemd), or else /var/cache/gpusnoop for root, or else $XDG_CACHE_HOME/gpusnoop
    // or ~/.cache/gpusnoop.
    static std::string default_folder();

    std::optional<Registrations> find(std::string_view build_id, uint64_t file_size) const;
    void keep(std::string_view build_id, uint64_t file_size, const Registrations& registrations) const;

    // Removes temporary files that killed processes have left. Returns the number of removed files.
    unsigned remove_unfinished() const;

    // Maximum bytes and maximum files in the folder. When a limit is exceeded, the oldest files are removed.
    static constexpr uint64_t size_max = 64 << 20;
    static constexpr size_t files_max = 4096;

private:
    Fd folder() const; // empty if the folder cannot be used

    std::string path_;
};

// Scans files for kernel registrations, one at a time. Scans run in a sandboxed helper process with a CPU limit,
// because the file is untrusted. Also, the tracing thread must not wait while a library of a gigabyte is read from a
// slow disk. The helper's answer is validated.
class Scanner {
public:
    Scanner();

    // True if files of this process are no longer scanned, because they have made helpers hang or crash.
    bool is_blocked(pid_t about) { return reader_.is_blocked(about); }
    // about: a process that maps the file. Returns false if no helper can start the scan now.
    bool begin(pid_t about, const Fd& file);
    // True once the scan has ended or timed out. Never waits.
    bool ended();
    // The result. Valid once ended() has returned true; nullopt if the scan failed.
    const std::optional<Registrations>& answer() const { return answer_; }

private:
    bool is_busy_ = false;
    std::optional<Registrations> answer_;
    JoinedParts parts_;
    Reader reader_;
};

} // namespace gpusnoop
