// SPDX-License-Identifier: Apache-2.0
// Messages between Targets and its helpers (file_search.hpp).
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
        mapped,      // find the CUDA files that the process maps executable
        installed,   // find the drivers that the process would load from the standard folders
        opened,      // examine the file sent with this message, which the process is about to map
        path_checks, // check paths (SearchRequest::questions)
        reexamine,   // examine the file sent with this message, which was overwritten
    };
    struct Question { // does this path lead any of these processes to the file with this inode?
        std::string path;
        uint64_t inode = 0;
        std::vector<pid_t> pids;
    };
    Kind kind = Kind::mapped;
    pid_t pid = 0;
    uint32_t dropped = 0; // number of files that the tool has dropped or moved so far; if it has changed, the helper
                          // forgets all file numbers
    std::vector<Question> questions;
    std::string path{}; // path of the file sent with this message; if kind is opened, as shown in /proc
};

void fields(auto& each, same_as_const<SearchRequest::Question> auto& q)
{
    each(q.path, q.inode, q.pids);
}

void fields(auto& each, same_as_const<SearchRequest> auto& r)
{
    each(r.kind, r.pid, r.dropped, r.questions, r.path);
}

// A file that a scan has found; its descriptor (O_PATH) is attached to the message.
struct FileCandidate {
    std::string path; // as the process sees it
    bool deleted = false;
    uint64_t device = 0, inode = 0; // from /proc/PID/maps or, for an opened file, stat(); 0: unknown
    uint64_t page = 0;              // address at which the helper mapped the file (see FileIds::find()); 0: none
    int64_t changed_ns = 0;         // time of the last change, as cached by the kernel
};

void fields(auto& each, same_as_const<FileCandidate> auto& f)
{
    each(f.path, f.deleted, f.device, f.inode, f.page, f.changed_ns);
}

// Reply to a candidate. If an inotify instance is attached to the message, the helper adds the file to that instance
// before it examines the file.
struct SearchVerdict {
    bool examine = false; // false if the file is already known or not wanted
    uint32_t number = 0;  // CudaFile::number if the file is known, else 0
};

void fields(auto& each, same_as_const<SearchVerdict> auto& v)
{
    each(v.examine, v.number);
}

// Contents of an examined candidate.
struct ExaminedFile {
    bool cuda = false; // false if this is not a CUDA file; the other fields are then unset
    Library library = Library::driver;
    uint32_t cookie_word = 0; // CudaFile::cookie_word
    int watch = -1;           // inotify watch descriptor; -1 if none
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

// A mapped file with a CUDA library's name that the helper could not open.
struct UnreadableFile {
    std::string path;
    uint64_t device = 0, inode = 0; // as /proc shows them
    int error = 0;                  // errno of the failed call
};

void fields(auto& each, same_as_const<UnreadableFile> auto& u)
{
    each(u.path, u.device, u.inode, u.error);
}

// Last message of an answer.
struct SearchEnd {
    bool complete = true;        // false if the scan ran out of time
    bool refused = false;        // true if reading the mappings is not permitted
    std::vector<uint32_t> known; // CudaFile::number of each mapped file that was already registered
    std::vector<uint8_t> leads;  // the answer to each SearchRequest::Question: 1 is yes, 0 is no
    std::vector<UnreadableFile> unreadable;
};

void fields(auto& each, same_as_const<SearchEnd> auto& e)
{
    each(e.complete, e.refused, e.known, e.leads, e.unreadable);
}

// Message from a helper. Exactly one member is set.
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
