// SPDX-License-Identifier: Apache-2.0
// Files that no process maps and that their path leads to no longer.
#include "attach/search.hpp"
#include "attach/targets.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t questions_max = 16; // at a time: paths are up to 4 KiB, a message is up to 128
constexpr Clock::duration time_for_answers = 20ms;

uint64_t inode_of(const Fd& file)
{
    struct statx st {};
    statx(file.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st);
    return st.stx_ino;
}

// Each with a process that lives in it.
std::map<uint64_t, pid_t> mount_namespaces_in_use()
{
    std::map<uint64_t, pid_t> all;
    for (pid_t pid : all_processes())
        all.emplace(mount_namespace(pid), pid);
    return all;
}

} // namespace

std::vector<CudaFile*> Targets::unused()
{
    std::vector<CudaFile*> candidates = files_.idle();
    if (candidates.empty() || files_.nearly_full())
        return candidates;
    find_lost(candidates);
    // Meanwhile a process may have come that maps it.
    std::erase_if(candidates,
                  [this](const CudaFile* file) { return !file->users.empty() || !lost_.contains(file->id); });
    lost_.clear();
    return candidates;
}

// A few at a time, and for no longer than that: others have their turn the next time.
void Targets::find_lost(std::span<CudaFile* const> files)
{
    const auto until = Clock::now() + time_for_answers;
    const auto left = [until] { return std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()); };
    for (size_t asked = 0; asked < files.size(); asked += questions_max) {
        if (asked_about_.empty())
            ask_whether_paths_lead_to(files, std::min(questions_max, files.size() - asked));
        while (!asked_about_.empty() && left() > 0ms)
            poll(left());
        if (!asked_about_.empty())
            return;
    }
}

void Targets::ask_whether_paths_lead_to(std::span<CudaFile* const> files, size_t count)
{
    if (!ready())
        return;
    const std::map<uint64_t, pid_t> in_use = mount_namespaces_in_use();
    SearchRequest request{.what = SearchRequest::What::leads, .pid = 0, .questions = {}};
    for (; count > 0; count--) {
        const CudaFile* const file = files[turn_++ % files.size()];
        std::vector<pid_t> through{getpid()};
        if (const auto neighbour = in_use.find(file->mount_namespace); neighbour != in_use.end())
            through.push_back(neighbour->second);
        request.questions.push_back({file->path, inode_of(file->file), std::move(through)});
        asked_about_.push_back(file->id);
    }
    if (!ask({.request = std::move(request)}))
        asked_about_.clear();
}

} // namespace gpusnoop
