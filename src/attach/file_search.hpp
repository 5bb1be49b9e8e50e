// SPDX-License-Identifier: Apache-2.0
// Search for CUDA libraries among the mappings of a process, and for the functions in them. The process controls these
// files, so reading them may hang, exhaust memory or crash. Therefore a sandboxed helper process (reader/helper.hpp)
// reads them. The helper can read any file that root can read, and do nothing else.
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

    // probes: the functions to find; must outlive the object. count_runtime: see Targets::Targets().
    FileSearch(std::span<const Probe> probes, bool count_runtime)
        : probes_(probes), count_runtime_(count_runtime),
          nccl_(std::ranges::find(probes, Library::nccl, &Probe::library) != probes.end())
    {}

    // True if the path names a library that this tool probes.
    bool has_cuda_name(std::string_view path) const
    {
        return nccl_ ? (is_cuda(path) && !is_runtime(path)) || is_nccl(path) : is_cuda(path);
    }
    // Returns the library to which a file name belongs.
    Library library_named(std::string_view path) const
    {
        return is_driver(path) ? Library::driver
               : is_hip(path)  ? Library::hip
               : nccl_         ? Library::nccl
                               : Library::runtime;
    }
    // True if the tool probes a library that can be linked statically, so that any file may contain it.
    bool searches_all_files() const { return count_runtime_ || nccl_; }
    // True if a file of this name may contain functions to probe.
    bool may_have_probes(std::string_view path) const
    {
        return searches_all_files() || has_cuda_name(path) || is_memfd(path);
    }

    static constexpr uint64_t memory_bytes = 64 << 20; // memory limit of a helper; PyTorch's libraries need 10 MiB

    // Main function of a helper process. Answers requests until the tool exits.
    void serve(Helper::Task& task);

    // Records a file without CUDA functions. It is skipped from then on, unless it has a CUDA library's name.
    void add_not_cuda(const Key& key);
    bool is_not_cuda(const Key& key) const { return not_cuda_.contains(key); }
    // Records a file that made a helper hang or crash. It is always skipped from then on.
    void block(const Key& key) { blocked_.insert(key); }
    bool is_blocked(const Key& key) const { return blocked_.contains(key); }

    // Encode and decode a helper's status: key and path of the file that the helper is reading. If the helper hangs or
    // crashes, that file is blocked, unless the key is zero.
    static std::string status_of(const Key& key, std::string_view path);
    static std::pair<Key, std::string> parse_status(std::string_view at);

private:
    // Identifies one version of a file. An inode number stays unique, because the tool keeps known files open.
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
    bool nccl_; // true if NCCL calls are counted
    std::set<Key> not_cuda_, blocked_;
    std::map<Version, uint32_t> known_; // in a helper: CudaFile::number of each file that the tool has registered
    uint32_t dropped_ = 0;              // SearchRequest::dropped of the last request
    Helper::Task* task_ = nullptr;      // set in serve()
};

} // namespace gpusnoop
