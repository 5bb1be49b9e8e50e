// SPDX-License-Identifier: Apache-2.0
// Which files to probe, and where in them: CUDA libraries among the mappings of processes. A file is one target however
// many paths, mounts and containers lead to it. What others control is read by helpers (file_search.hpp), of which
// there are more where one is slow; nothing here waits for them unless it is told to.
#pragma once

#include "attach/cuda_file.hpp"
#include "attach/file_search.hpp"
#include "probes/probes.hpp"
#include "proc/file_id.hpp"
#include "util/fd.hpp"

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

class Targets {
public:
    // A process may map as many files called libcuda.so as it likes, and each costs us descriptors and links.
    static constexpr size_t files_max = 1024;
    static constexpr size_t files_of_owner_max = 512; // one user leaves as many to others
    static constexpr size_t files_of_process_max = 64;

    // probes: what to look for; must outlive the object. count_runtime: the runtime's probes count calls, so files with
    // a runtime in them are looked for in every process; else they only teach names, and processes without a driver
    // are passed over.
    Targets(std::span<const Probe> probes, bool count_runtime);
    ~Targets();

    // A search for the CUDA files that this process maps executable right now or, in_reach, for the drivers that it
    // would load from the usual places, though it does not map them yet: probes that are there before the library is
    // mapped miss nothing. Only where ready().
    void look(pid_t pid, bool in_reach = false);
    bool ready(); // a helper is free
    bool looking() const;

    struct Found {
        pid_t pid = 0;
        bool in_reach = false;
        std::vector<CudaFile*> files; // valid until they are dropped: one that was found or, at the end, all of them
        bool ended = false;
        bool all = true;   // false, at the end: there was no time for more, look again
        bool lost = false; // its helper has hung or died
        std::chrono::nanoseconds took{0};
    };
    // What has been found since; waits no longer than that for something.
    std::vector<Found> found(std::chrono::milliseconds longest);
    struct Look {
        pid_t pid;
        bool in_reach = false;
    };
    // All of these, or as many as there is time for (time in which nothing gets on, and five times that in all): the
    // others are left in the list. step: called between them, and may throw. Throws Error where no helper can be
    // started.
    std::vector<Found> found_all(std::vector<Look>& looks, std::chrono::milliseconds time,
                                 const std::function<void()>& step);
    // A descriptor, readable when there is something.
    int descriptor() const { return helpers_have_said_.get(); }

    // True where this mapping (device and inode as /proc shows them) may bring a CUDA file into its process.
    bool interesting(std::string_view path, uint64_t device, uint64_t inode) const;

    // Files that nobody has mapped since the last time this was asked, and that their path leads to no longer: their
    // container is gone, or they are deleted. To be dropped, or the file system they are on cannot be unmounted.
    std::vector<CudaFile*> unused();
    void drop(CudaFile* file);

    // Why a file could not be used, once per file.
    const std::vector<std::string>& complaints() const { return complaints_; }
    void complain(std::string why);

    // Processes whose mappings we were not allowed to read.
    size_t unreadable() const { return unreadable_.size(); }

private:
    struct Searcher;
    struct Seen { // a file as it was when we looked; without a descriptor it may become another one
        FileId id;
        int64_t changed_ns = 0;
        auto operator<=>(const Seen&) const = default;
    };

    Searcher* free_one();
    void ask(Searcher& searcher, SearchRequest request);
    void hear_all(std::chrono::milliseconds longest);
    bool hear(Searcher& searcher);
    SearchVerdict judge(Searcher& searcher, FileCandidate candidate, Fd where);
    void take_in(Searcher& searcher, ExaminedFile examined);
    void end(Searcher& searcher, const SearchEnd& how);
    void lose(Searcher& searcher);
    void strike(pid_t pid, std::string_view what, std::string_view why);
    void add_found(Searcher& searcher, CudaFile* file);
    CudaFile* numbered(uint32_t number) const;
    bool believable(const ExaminedFile& examined) const;
    bool room_for_one(pid_t pid, uint64_t owner);
    void find_lost(std::span<CudaFile* const> files);
    void ask_whether_paths_lead_to(std::span<CudaFile* const> files, size_t count);
    bool passed_over(pid_t pid) const;

    std::span<const Probe> probes_;
    bool count_runtime_;
    FileSearch search_; // what helpers begin with
    Fd helpers_have_said_;
    std::list<Searcher> searchers_;
    std::vector<Found> found_;
    FileIds ids_;
    std::map<FileId, std::unique_ptr<CudaFile>> files_;
    uint32_t numbers_ = 0, dropped_ = 0;             // files so far
    std::set<CudaFile*> idle_;                       // without users at the last look
    std::vector<FileId> asked_about_;                // whether their paths lead to them
    std::set<FileId> lost_;                          // those whose paths do not
    size_t turn_ = 0;                                // of the one to ask about next
    std::set<Seen> useless_;                         // called like CUDA, with nothing to probe in them
    std::set<std::pair<bool, uint64_t>> over_limit_; // processes (false) and owners that have been complained of
    std::set<pid_t> unreadable_;
    std::set<std::pair<pid_t, uint64_t>> hanging_;         // and their starts: their mappings cannot be read in time
    std::map<uint64_t, unsigned> strikes_;                 // owners: helpers that their files have cost
    std::set<std::pair<pid_t, FileSearch::Key>> forgiven_; // what a helper has died of once
    std::vector<std::string> complaints_;
    bool limit_told_ = false; // of open files
    bool found_all_ = false;  // once
    bool helpless_ = false;   // no helper could be started the last time
};

} // namespace gpusnoop
