// SPDX-License-Identifier: Apache-2.0
// A helper that searches for files, its request, and the file that it examines.
#pragma once

#include "attach/targets.hpp"

#include <chrono>
#include <optional>
#include <vector>

namespace gpusnoop {

struct Targets::Candidate {
    FileCandidate candidate;
    Fd where;
    KnownFiles::Seen seen;
    FileGuard guard;
};

struct Targets::Searcher {
    using Clock = std::chrono::steady_clock;

    explicit Searcher(FileSearch& search) : helper([&search](Helper::Task& task) { search.serve(task); }) {}

    Helper helper;
    std::optional<SearchRequest> request;
    uint64_t user = 0; // that the request's process belongs to
    std::optional<Candidate> examining;
    CudaFile* again = nullptr;    // the file of SearchRequest::What::again; null where it was dropped
    std::optional<uint64_t> held; // see Targets::Held
    std::vector<CudaFile*> files; // of this search
    Clock::time_point begun, looked_at;
    Clock::duration silent{};
};

} // namespace gpusnoop
