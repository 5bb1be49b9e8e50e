// SPDX-License-Identifier: Apache-2.0
// What Targets and the processes that search for it (file_search.hpp) tell each other.
#pragma once

#include "attach/known_files.hpp"
#include "reader/message.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

struct SearchRequest {
    enum class Kind : uint8_t {
        mapped,      // the CUDA files that the process maps executable
        installed,   // the drivers that it would load from the usual places
        opened,      // the file that comes with the request, which it is about to map
        path_checks, // what the questions ask
        reexamine,   // the file that comes with the request and was overwritten
    };
    struct Question { // whether this path leads one of these processes to the file with this inode
        std::string path;
        uint64_t inode = 0;
        std::vector<pid_t> pids;
    };
    Kind kind = Kind::mapped;
    pid_t pid = 0;
    uint32_t dropped = 0; // files so far: where it has changed, numbers that were told may mean none
    std::vector<Question> questions;
    std::string path{}; // of the opened file, as /proc shows it, or of the file to examine again
};

void fields(auto& each, same_as_const<SearchRequest::Question> auto& q)
{
    each(q.path, q.inode, q.pids);
}

void fields(auto& each, same_as_const<SearchRequest> auto& r)
{
    each(r.kind, r.pid, r.dropped, r.questions, r.path);
}

// A file, which comes with a descriptor of it (O_PATH).
struct FileCandidate {
    std::string path; // as the process sees it
    bool deleted = false;
    uint64_t device = 0, inode = 0; // as /proc shows them, of an opened file as stat() does; 0: neither
    uint64_t page = 0;              // where the helper has it mapped, for FileIds; 0: nowhere
    int64_t changed_ns = 0;         // when, as far as the kernel knows
};

void fields(auto& each, same_as_const<FileCandidate> auto& f)
{
    each(f.path, f.deleted, f.device, f.inode, f.page, f.changed_ns);
}

// The answer to a candidate. An inotify instance that comes with it is to watch the file before it is examined.
struct SearchVerdict {
    bool examine = false; // else it is known
    uint32_t number = 0;  // by which it is, where it has functions to probe
};

void fields(auto& each, same_as_const<SearchVerdict> auto& v)
{
    each(v.examine, v.number);
}

// What is in the candidate that was to be examined.
struct ExaminedFile {
    bool cuda = false; // the rest is of those that have to do with CUDA
    Library library = Library::driver;
    uint32_t cookie_word = 0; // as in CudaFile
    int watch = -1;           // of the inotify instance that came with the verdict
    std::vector<Place> places;
    std::vector<std::string> missing;
    std::string complaint;
};

void fields(auto& each, same_as_const<Place> auto& p)
{
    each(p.probe, p.offset, p.delta, p.emulated);
}

void fields(auto& each, same_as_const<ExaminedFile> auto& f)
{
    each(f.cuda, f.library, f.cookie_word, f.watch, f.places, f.missing, f.complaint);
}

// A file named like a CUDA library that a process maps, and that the helper could not open.
struct UnreadableFile {
    std::string path;
    uint64_t device = 0, inode = 0; // as /proc shows them
    int error = 0;                  // errno of the failed call
};

void fields(auto& each, same_as_const<UnreadableFile> auto& u)
{
    each(u.path, u.device, u.inode, u.error);
}

struct SearchEnd {
    bool complete = true;        // false: there was no time for more
    bool refused = false;        // its mappings may not be read
    std::vector<uint32_t> known; // numbers of files that it maps: what they are was told with those of others
    std::vector<uint8_t> leads;  // 0 or 1 for each question
    std::vector<UnreadableFile> unreadable;
};

void fields(auto& each, same_as_const<SearchEnd> auto& e)
{
    each(e.complete, e.refused, e.known, e.leads, e.unreadable);
}

// Exactly one of them.
struct SearchAnswer {
    std::optional<FileCandidate> candidate;
    std::optional<ExaminedFile> examined;
    std::optional<SearchEnd> end;
};

void fields(auto& each, same_as_const<SearchAnswer> auto& a)
{
    each(a.candidate, a.examined, a.end);
}

} // namespace gpusnoop
