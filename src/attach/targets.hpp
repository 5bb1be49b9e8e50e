// SPDX-License-Identifier: Apache-2.0
// Search for the files to probe: CUDA libraries among the mappings of processes. A file is one target, even if several
// paths, mounts and containers lead to it. Sandboxed helpers read the files (file_search.hpp). Only found(),
// found_all() and unused() wait for helpers, for a limited time.
#pragma once

#include "attach/file_search.hpp"
#include "attach/known_files.hpp"
#include "attach/probes.hpp"
#include "base/fd.hpp"
#include "proc/mapped_file.hpp"
#include "reader/reader.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

class Targets {
public:
    // probes: the functions to find; must outlive the object. count_runtime: if true, the runtime's calls are counted,
    // so every file of every process is searched for a runtime. If false, the runtime's probes only provide names, so
    // processes without a driver are skipped.
    Targets(std::span<const Probe> probes, bool count_runtime);
    ~Targets();

    // Starts a scan for the CUDA files that the process maps executable. If `installed` is set, scans instead for the
    // drivers that the process would load from the standard folders: probes that are attached before a library is
    // mapped lose no call. Call it only if ready().
    void scan(pid_t pid, bool installed = false);
    // A process that is paused (see MappingGate) until its scan ends.
    struct Held {
        uint64_t id = 0;
        pid_t pid = 0;
        std::string path{}; // path of the file that the process is about to map, as /proc shows it
        Fd file{};          // the same file (O_PATH); if empty, the current mappings are scanned
    };
    void scan(Held held);
    bool ready(); // true if a helper is free

    struct Found {
        pid_t pid = 0;
        bool installed = false;
        std::vector<CudaFile*> files; // all files of the scan if ended is set, else one new file; valid until drop()
        bool ended = false;
        bool complete = true;     // valid if ended is set; if false, the scan must be repeated
        bool helper_lost = false; // the helper of this scan hung or crashed
        // True if a suspended file was examined again. If the file has nothing to probe, `why` has the reason.
        bool reexamined = false;
        bool moved = false; // valid if reexamined is set; true if overlayfs has copied the file up to another inode
        std::string why{};
        std::chrono::nanoseconds took{0};
        std::optional<uint64_t> held{}; // valid if ended is set: Held::id
    };
    // Returns the results since the last call. If there are none, waits up to `timeout` for the first result.
    std::vector<Found> found(std::chrono::milliseconds timeout);
    struct Scan {
        pid_t pid;
        bool installed = false;
    };
    // Runs these scans and returns their results. Stops if no scan makes progress for `time`, or after five times
    // `time` in total. Skips users whose files are slow to read. On return, `scans` has the unfinished scans. step:
    // called between scans; may throw. Throws Error if no helper can be started.
    std::vector<Found> found_all(std::vector<Scan>& scans, std::chrono::milliseconds time,
                                 const std::function<void()>& step);
    // Message about the processes whose scans are unfinished; empty if there are none.
    static std::string describe_unfinished(std::span<const Scan> left);
    // Becomes readable when found() may have results.
    int descriptor() const { return epoll_.get(); }

    // True if the mapped file may contain CUDA functions. device and inode: as /proc shows them.
    bool may_be_cuda(std::string_view path, uint64_t device, uint64_t inode) const;

    // Returns the files that no process has mapped since the previous call and whose path no longer leads to them,
    // because the file or its container was removed. The caller should drop these files; until then, their file system
    // cannot be unmounted.
    std::vector<CudaFile*> unused();
    void drop(CudaFile* file);

    // Returns the files that writers have opened or written since the last examination. Detach the probes of such a
    // file, then call suspend(), which lets the writers continue. thorough: see FileGuard::is_broken().
    std::vector<CudaFile*> overwritten(bool thorough);
    void suspend(CudaFile* file);
    // Re-examines the suspended files that can be guarded again (FileGuard::retake()). found() returns the results.
    void examine_suspended();

    // Messages about files that cannot be traced, one per file.
    const std::vector<std::string>& complaints() const { return complaints_.all(); }
    void complain(std::string why) { complaints_.add(std::move(why)); }

    // Number of files with a CUDA library's name that could not be opened. complaints() has the reasons.
    size_t unreadable_files() const { return unreadable_files_.size(); }
    // Number of processes whose mappings the tool is not permitted to read.
    size_t unreadable() const { return unreadable_.size(); }

private:
    struct Candidate;
    struct Search;

    Reader::Service service();
    bool may_use_helper(uint64_t user);
    bool ask(Search search, int file = -1);
    void poll(std::chrono::milliseconds timeout);
    Reader::Reply apply(Reader::Part part);
    bool on_loss(const Reader::Loss& loss);
    SearchVerdict judge(Search& search, FileCandidate candidate, Fd where);
    void apply_examined(Search& search, ExaminedFile examined);
    void end(Search search, const SearchEnd& result);
    void report_unreadable(pid_t pid, const UnreadableFile& file);
    void add_found(Search& search, CudaFile* file);
    bool is_valid(const ExaminedFile& examined) const;
    void add_file(Search& search, Candidate found, ExaminedFile examined);
    SearchVerdict judge_again(Search& search, Candidate found) const;
    void apply_examined_again(CudaFile* file, const FileId& id, ExaminedFile examined);
    static void postpone(CudaFile* file);
    void drain_write_signals();
    void find_unreachable(std::span<CudaFile* const> files);
    void request_path_checks(std::span<CudaFile* const> files, size_t count);

    std::span<const Probe> probes_;
    WriteSignals writes_;                 // declared before files_, so that SIGIO is blocked before a lease is taken
    FileSearch search_;                   // a helper starts with a copy of this object
    Fd epoll_;                            // waits for helpers and write signals
    std::map<uint64_t, Search> searches_; // pending scans, by question number
    std::vector<Found> found_;
    FileIds ids_;
    Complaints complaints_;
    KnownFiles files_{complaints_};
    std::vector<FileId> checked_paths_; // files whose path check is pending
    std::set<FileId> unreachable_;      // files whose path no longer leads to them
    bool check_leases_ = false;         // SIGIO or inotify has reported a possible write since the last overwritten()
    size_t next_path_check_ = 0;        // index of the next file to check
    std::set<pid_t> unreadable_;
    std::set<FileSearch::Key> unreadable_files_; // files already reported as unreadable
    bool open_limit_reported_ = false;           // true once the limit of open files was reported
    bool found_all_ = false;                     // true once found_all() has returned
    int start_error_ = 0;                        // errno of the last attempt to start a helper; 0 if it succeeded
    Reader reader_;
};

} // namespace gpusnoop
