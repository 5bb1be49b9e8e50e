// SPDX-License-Identifier: Apache-2.0
#include "attach/attach.hpp"
#include "attach/search.hpp"
#include "attach/targets.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

// Handling of files that are overwritten while they are probed.

namespace {

using namespace std::chrono_literals;

constexpr unsigned reports_per_file_max = 8; // limited, because the owner may overwrite the file over and over
// Limits how often a file is detached, reexamined and attached if its owner keeps opening it for writing.
constexpr unsigned suspensions_before_pause = 8;
constexpr FileGuard::Clock::duration frequent_interval = 10s, suspension_pause = 5s;
constexpr FileGuard::Clock::duration examination_retry = 1s; // retry delay after a helper failed to reexamine the file

} // namespace

void Targets::drain_write_signals()
{
    check_leases_ |= writes_.drain_leases();
    while (const auto event = writes_.next_event()) {
        const auto [watch, mask] = *event;
        for (CudaFile* file : files_.all())
            if (watch == file->guard.watch() || (mask & IN_Q_OVERFLOW && file->guard.needs_watch()))
                file->guard.on_watch_event(mask);
        check_leases_ = true;
    }
}

std::vector<CudaFile*> Targets::overwritten(bool thorough)
{
    std::vector<CudaFile*> broken;
    drain_write_signals();
    if (!std::exchange(check_leases_, false) && !thorough)
        return broken;
    for (auto& [number, search] : searches_) // a file that is being examined has no probes to detach
        if (search.examining && search.examining->guard.is_broken(search.examining->where, false))
            search.examining->guard.release(search.examining->where);
    for (CudaFile* file : files_.all())
        if (file->guard.is_broken(file->file, thorough))
            broken.push_back(file);
    return broken;
}

void Targets::suspend(CudaFile* file)
{
    file->guard.release(file->file);
    if (std::exchange(file->helpers_lost, 0) > 1) // try again, because the new contents may be valid
        file->examine_at = {};
    if (std::exchange(file->suspended, true))
        return;
    const auto now = FileGuard::Clock::now();
    const auto since_last = now - std::exchange(file->suspended_at, now);
    if (++file->times_suspended > suspensions_before_pause && since_last < frequent_interval)
        file->examine_at = now + suspension_pause;
}

void Targets::examine_suspended()
{
    for (CudaFile* file : files_.all()) {
        if (!file->suspended || file->examining || FileGuard::Clock::now() < file->examine_at ||
            (file->guard.is_open() && !file->guard.retake(file->file)))
            continue;
        if (!ready())
            return;
        std::string path = file->path;
        if (path.ends_with(deleted_suffix))
            path.resize(path.size() - deleted_suffix.size());
        SearchRequest request{
            .kind = SearchRequest::Kind::reexamine, .pid = 0, .questions = {}, .path = std::move(path)};
        file->examining = ask({.request = std::move(request), .suspended_file = file});
    }
}

SearchVerdict Targets::judge_again(Search& search, Candidate found) const
{
    if (!search.suspended_file) // the file was dropped after the request was sent
        return {};
    search.examining = std::move(found);
    return {.examine = true};
}

void Targets::apply_examined_again(CudaFile* file, const FileId& id, ExaminedFile examined)
{
    if (!file)
        return;
    file->examining = false;
    if (file->guard.is_open()) // a writer has opened the file during the examination
        return;
    file->guard.set_watch(examined.watch);
    if (!is_valid(examined))
        examined = {};
    const bool moved = id != file->id;
    if (moved && !files_.move(file, id)) {
        // Another process maps the new inode, which has its own entry, so this entry is useless.
        file->guard.release(file->file);
        file->examine_at = FileGuard::Clock::time_point::max();
        if (!files_.find(id)->suspended)
            found_.push_back({.files = {file}, .reexamined = true, .moved = true, .why = {}});
        return;
    }
    file->places = std::move(examined.places);
    file->missing = std::move(examined.missing);
    if (!file->places.empty()) {
        file->library = examined.library;
        file->cookie_word = examined.cookie_word;
    }
    file->suspended = false;
    if (examined.complaint.empty() && file->places.empty())
        examined.complaint = "it defines none of the functions to probe";
    found_.push_back({.files = {file}, .reexamined = true, .moved = moved, .why = std::move(examined.complaint)});
}

void Targets::postpone(CudaFile* file)
{
    file->examining = false;
    file->examine_at =
        file->helpers_lost > 1 ? FileGuard::Clock::time_point::max() : FileGuard::Clock::now() + examination_retry;
}

void Attacher::step()
{
    options_.step();
    yield_to_writers();
    if (linking_ && linking_->suspended)
        throw FileSuspended{};
}

void Attacher::yield_to_writers(bool thorough)
{
    if (switching_)
        return;
    const std::vector<CudaFile*> files = targets_.overwritten(thorough);
    Links links;
    for (auto& [key, attachment] : attachments_)
        if (std::ranges::find(files, attachment.file) != files.end())
            extract_links(attachment, links);
    detach(std::move(links));
    for (CudaFile* file : files) {
        targets_.suspend(file);
        report_suspended(file, true);
    }
}

void Attacher::report_suspended(CudaFile* file, bool was_attached)
{
    if (file->times_reported == std::min(file->times_suspended, reports_per_file_max))
        return;
    file->times_reported = std::min(file->times_suspended, reports_per_file_max);
    remarks_.push_back(fmt::format("{} {}; its calls are not counted until it is complete again", file->path,
                                   was_attached ? "is being overwritten: its probes are detached"
                                                : "is open for writing: its probes are not attached"));
    if (file->times_reported == reports_per_file_max)
        remarks_.back() += " (not reported again for this file)";
}

void Attacher::attach_again(const Targets::Found& found)
{
    CudaFile* const file = found.files.front();
    // A file that has moved to another inode and is still suspended is useless: another entry has that inode, and the
    // probes are attached there (Targets::apply_examined_again()).
    const bool known_by_another = found.moved && file->suspended;
    for (auto& [key, attachment] : attachments_)
        if (key.first == file) {
            attachment.refused = false;
            link_all(attachment);
        }
    // Processes that used the old inode may still map it.
    if (found.moved)
        for (const pid_t pid : file->users)
            scan(pid);
    if ((file->suspended && !known_by_another) || file->times_suspended > reports_per_file_max)
        return;
    if (found.moved && !file->users.empty())
        remarks_.push_back(fmt::format("overlayfs has replaced {} by a copy: processes that mapped the original are "
                                       "counted only if another path leads to the original",
                                       file->path));
    if (!found.why.empty())
        remarks_.push_back(fmt::format("{} was overwritten and is no longer traced: {}", file->path, found.why));
    else
        remarks_.push_back(fmt::format(
            "{} is complete again: its probes are attached; its calls were not counted for {:.2f} s", file->path,
            std::chrono::duration<double>(FileGuard::Clock::now() - file->suspended_at).count()));
}

// Search for files that no process maps and whose path no longer leads to them.

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t questions_max = 16; // maximum per message; a message holds 128 KiB, and a path may take 4 KiB
constexpr Clock::duration path_check_budget = 20ms;

uint64_t inode_of(const Fd& file)
{
    struct statx st {};
    statx(file.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st);
    return st.stx_ino;
}

// Returns the mount namespaces in use, each with the id of a process in it.
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
    find_unreachable(candidates);
    // During these checks, a process may have mapped one of the files.
    std::erase_if(candidates,
                  [this](const CudaFile* file) { return !file->users.empty() || !unreachable_.contains(file->id); });
    unreachable_.clear();
    return candidates;
}

// Checks a few paths per call, within path_check_budget. Later calls check the other paths.
void Targets::find_unreachable(std::span<CudaFile* const> files)
{
    const auto until = Clock::now() + path_check_budget;
    const auto left = [until] { return std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()); };
    for (size_t asked = 0; asked < files.size(); asked += questions_max) {
        if (checked_paths_.empty())
            request_path_checks(files, std::min(questions_max, files.size() - asked));
        while (!checked_paths_.empty() && left() > 0ms)
            poll(left());
        if (!checked_paths_.empty())
            return;
    }
}

void Targets::request_path_checks(std::span<CudaFile* const> files, size_t count)
{
    if (!ready())
        return;
    const std::map<uint64_t, pid_t> in_use = mount_namespaces_in_use();
    SearchRequest request{.kind = SearchRequest::Kind::path_checks, .pid = 0, .questions = {}};
    for (; count > 0; count--) {
        const CudaFile* const file = files[next_path_check_++ % files.size()];
        std::vector<pid_t> through{getpid()};
        if (const auto neighbour = in_use.find(file->mount_namespace); neighbour != in_use.end())
            through.push_back(neighbour->second);
        request.questions.push_back({file->path, inode_of(file->file), std::move(through)});
        checked_paths_.push_back(file->id);
    }
    if (!ask({.request = std::move(request)}))
        checked_paths_.clear();
}

} // namespace gpusnoop
