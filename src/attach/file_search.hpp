// SPDX-License-Identifier: Apache-2.0
// CUDA libraries among the mappings of a process, and the functions in them. All that is read here is the process' own:
// it may be made to hang, to grow, or to attack its reader. So it is read in a helper (reader/helper.hpp), which may
// read what root may, and nothing else.
#pragma once

#include "attach/probes.hpp"
#include "attach/search_messages.hpp"
#include "base/fd.hpp"
#include "code/elf.hpp"
#include "proc/cuda_libraries.hpp"
#include "proc/process.hpp"
#include "reader/helper.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

class FileSearch {
public:
    using Key = std::pair<uint64_t, uint64_t>; // device and inode, as /proc shows them

    // probes: what to look for; must outlive the object. count_runtime: see Targets.
    FileSearch(std::span<const Probe> probes, bool count_runtime)
        : probes_(probes), count_runtime_(count_runtime),
          nccl_(std::ranges::find(probes, Library::nccl, &Probe::library) != probes.end())
    {}

    // What a file is called that is to be examined for this tool.
    bool has_cuda_name(std::string_view path) const
    {
        return nccl_ ? (is_cuda(path) && !is_runtime(path)) || is_nccl(path) : is_cuda(path);
    }
    // Which library a file of that name is.
    Library library_named(std::string_view path) const
    {
        return is_driver(path) ? Library::driver
               : is_hip(path)  ? Library::hip
               : nccl_         ? Library::nccl
                               : Library::runtime;
    }
    // Others may have a copy of the library in them: any file may, of any process.
    bool searches_all_files() const { return count_runtime_ || nccl_; }
    // A file of that name may have something to probe in it.
    bool may_have_probes(std::string_view path) const
    {
        return searches_all_files() || has_cuda_name(path) || is_memfd(path);
    }

    static constexpr uint64_t memory_bytes = 64 << 20; // PyTorch's libraries take 10

    // A helper's whole life: answers requests until its owner has gone.
    void serve(Helper::Task& task);

    // Files that are not to be looked at: they have no CUDA in them, unless they are called so.
    void add_not_cuda(const Key& key);
    bool is_not_cuda(const Key& key) const { return not_cuda_.contains(key); }
    // Nor these, whatever they are called: a helper did not survive it.
    void block(const Key& key) { blocked_.insert(key); }
    bool is_blocked(const Key& key) const { return blocked_.contains(key); }

    // What a helper says it is at: a file, or no file of those that can be refused.
    static std::string status_of(const Key& key, std::string_view path);
    static std::pair<Key, std::string> parse_status(std::string_view at);

private:
    // A file as it was when it was told of. Its inode is kept open as long as its number means something.
    struct Version {
        Key key;
        uint64_t device, inode;
        int64_t changed_ns;
        auto operator<=>(const Version&) const = default;
    };

    SearchEnd search_mapped(pid_t pid);
    SearchEnd search_installed(pid_t pid);
    SearchEnd examine_again(const std::string& path, const Fd& file);
    SearchEnd search_opened(std::string_view path, Fd where);
    SearchEnd check_paths(const std::vector<SearchRequest::Question>& questions) const;
    static Version version_of(const FoundFile& found, const Mapping& mapping);
    bool submit(const FoundFile& found, const Mapping& mapping, bool is_program);
    void report_unreadable(SearchEnd& end, pid_t pid, const Mapping& mapping, int error) const;
    ExaminedFile examine(Fd file, const Mapping& mapping, bool is_program) const;
    void locate(ExaminedFile& found, const Elf& elf, Runtime runtime) const;
    void answer(const SearchAnswer& answer, int file = -1);

    std::span<const Probe> probes_;
    bool count_runtime_;
    bool nccl_; // is what calls are counted of
    std::set<Key> not_cuda_, blocked_;
    std::map<Version, uint32_t> known_; // files by number, in a helper: another user of one is told without a question
    uint32_t dropped_ = 0;              // files, when these were told
    Helper::Task* task_ = nullptr;      // while it serves
};

} // namespace gpusnoop
