// SPDX-License-Identifier: Apache-2.0
// Which files to probe, and where in them: CUDA libraries among the mappings of processes. A file is one target however
// many paths, mounts and containers lead to it. Helpers read what others control (file_search.hpp); nothing here waits
// for them unless it is told to.
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
    // probes: what to look for; must outlive the object. count_runtime: the runtime's probes count calls, so files with
    // a runtime in them are looked for in every process; else they only teach names, and processes without a driver
    // are passed over.
    Targets(std::span<const Probe> probes, bool count_runtime);
    ~Targets();

    // A search for the CUDA files that this process maps executable right now or, installed, for the drivers that it
    // would load from the usual places, though it does not map them yet: probes that are there before the library is
    // mapped miss nothing. Only where ready().
    void scan(pid_t pid, bool installed = false);
    // A process that is held (see MappingGate) until its search has ended.
    struct Held {
        uint64_t id = 0;
        pid_t pid = 0;
        std::string path{}; // of the file that it is about to map, as /proc shows it
        Fd file{};          // O_PATH; if absent, its current mappings are searched
    };
    void scan(Held held);
    bool ready(); // a helper is free

    struct Found {
        pid_t pid = 0;
        bool installed = false;
        std::vector<CudaFile*> files; // valid until they are dropped: one that was found or, at the end, all of them
        bool ended = false;
        bool complete = true;     // false, at the end: there was no time for more, look again
        bool helper_lost = false; // its helper has hung or died
        bool reexamined =
            false;          // a suspended file has been examined again; without places it is of no use now, see why
        bool moved = false; // ... and is another inode now: an overlay has copied it up
        std::string why{};
        std::chrono::nanoseconds took{0};
        std::optional<uint64_t> held{}; // at the end: the process is, by this id
    };
    // What has been found since; waits no longer than that for something.
    std::vector<Found> found(std::chrono::milliseconds longest);
    struct Scan {
        pid_t pid;
        bool installed = false;
    };
    // All of these, or as many as there is time for (time in which nothing gets on, and five times that in all),
    // without those of slow users: the others are left in the list. step: called between them, and may throw. Throws
    // Error where no helper can be started.
    std::vector<Found> found_all(std::vector<Scan>& scans, std::chrono::milliseconds time,
                                 const std::function<void()>& step);
    // Whose mappings are among those left, in words; empty: nobody's.
    static std::string describe_unfinished(std::span<const Scan> left);
    // A descriptor, readable when there is something.
    int descriptor() const { return epoll_.get(); }

    // True where this mapping (device and inode as /proc shows them) may bring a CUDA file into its process.
    bool may_be_cuda(std::string_view path, uint64_t device, uint64_t inode) const;

    // Files that nobody has mapped since the last time this was asked, and that their path leads to no longer: their
    // container is gone, or they are deleted. To be dropped, or the file system they are on cannot be unmounted.
    std::vector<CudaFile*> unused();
    void drop(CudaFile* file);

    // Files that writers have opened or written since they were examined, each once. The probes have to be detached
    // before suspend(), which lets the writers continue. thorough: see FileGuard::is_broken().
    std::vector<CudaFile*> overwritten(bool thorough);
    void suspend(CudaFile* file);
    // Has helpers examine the suspended files that no writer has open any longer. found() returns them.
    void examine_suspended();

    // Why a file could not be used, once per file.
    const std::vector<std::string>& complaints() const { return complaints_.all(); }
    void complain(std::string why) { complaints_.add(std::move(why)); }

    // Files named like CUDA libraries that could not be opened; complaints() has each with its reason.
    size_t unreadable_files() const { return unreadable_files_.size(); }
    // Processes whose mappings we were not allowed to read.
    size_t unreadable() const { return unreadable_.size(); }

private:
    struct Candidate;
    struct Search;

    Reader::Service service();
    bool may_use_helper(uint64_t user);
    bool ask(Search search, int file = -1);
    void poll(std::chrono::milliseconds longest);
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
    WriteSignals writes_;                 // before files, which may have leases
    FileSearch search_;                   // what helpers begin with
    Fd epoll_;                            // epoll of helpers and writers
    std::map<uint64_t, Search> searches_; // by number of the question
    std::vector<Found> found_;
    FileIds ids_;
    Complaints complaints_;
    KnownFiles files_{complaints_};
    std::vector<FileId> checked_paths_; // whether their paths lead to them
    std::set<FileId> unreachable_;      // those whose paths do not
    bool check_leases_ = false;         // SIGIO has come
    size_t next_path_check_ = 0;        // of the one to ask about next
    std::set<pid_t> unreadable_;
    std::set<FileSearch::Key> unreadable_files_; // reported once each
    bool open_limit_reported_ = false;           // of open files
    bool found_all_ = false;                     // once
    int start_error_ = 0;                        // errno of the last start of a helper; 0: it succeeded
    Reader reader_;
};

} // namespace gpusnoop
