// SPDX-License-Identifier: Apache-2.0
// Files that are written while they are probed.
#include "attach/attach.hpp"
#include "attach/search.hpp"
#include "attach/targets.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <sys/inotify.h>
#include <utility>

namespace gpusnoop {
namespace {

using namespace std::chrono_literals;

constexpr unsigned reports_of_file_max = 8; // its owner may overwrite it all the time
// Limits how often a file is detached, examined and attached whose owner opens it for writing all the time.
constexpr unsigned suspended_often = 8;
constexpr FileGuard::Clock::duration often = 10s, pause_if_often = 5s;
constexpr FileGuard::Clock::duration examination_retry = 1s; // if no helper was free

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
    for (auto& [number, search] : searches_) // nothing is attached yet
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
    if (std::exchange(file->helpers_lost, 0) > 1) // the new contents may be valid
        file->examine_at = {};
    if (std::exchange(file->suspended, true))
        return;
    const auto now = FileGuard::Clock::now();
    const auto since_last = now - std::exchange(file->suspended_at, now);
    if (++file->times_suspended > suspended_often && since_last < often)
        file->examine_at = now + pause_if_often;
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
        SearchRequest request{.what = SearchRequest::What::again, .pid = 0, .questions = {}, .path = std::move(path)};
        file->examining = ask({.request = std::move(request), .again = file});
    }
}

SearchVerdict Targets::judge_again(Search& search, Candidate found) const
{
    if (!search.again) // it was dropped meanwhile
        return {};
    search.examining = std::move(found);
    return {.examine = true};
}

void Targets::apply_examined_again(CudaFile* file, const FileId& id, ExaminedFile examined)
{
    if (!file)
        return;
    file->examining = false;
    if (file->guard.is_open()) // a writer came meanwhile
        return;
    file->guard.set_watch(examined.watch);
    if (!believable(examined))
        examined = {};
    const bool moved = id != file->id;
    if (moved && !files_.move(file, id)) { // a process that maps the new inode was found first: this one is of no use
        file->guard.release(file->file);
        file->examine_at = FileGuard::Clock::time_point::max();
        if (!files_.find(id)->suspended)
            found_.push_back({.files = {file}, .again = true, .moved = true, .why = {}});
        return;
    }
    file->places = std::move(examined.places);
    file->missing = std::move(examined.missing);
    if (!file->places.empty()) {
        file->library = examined.library;
        file->word = examined.word;
    }
    file->suspended = false;
    if (examined.complaint.empty() && file->places.empty())
        examined.complaint = "it has none of the functions looked for";
    found_.push_back({.files = {file}, .again = true, .moved = moved, .why = std::move(examined.complaint)});
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
    if (exchanging_)
        return;
    const std::vector<CudaFile*> files = targets_.overwritten(thorough);
    Links links;
    for (auto& [key, attachment] : attachments_)
        if (std::ranges::find(files, attachment.file) != files.end())
            take_links(attachment, links);
    detach(std::move(links));
    for (CudaFile* file : files) {
        targets_.suspend(file);
        report_suspended(file, true);
    }
}

void Attacher::report_suspended(CudaFile* file, bool was_attached)
{
    if (file->times_reported == std::min(file->times_suspended, reports_of_file_max))
        return;
    file->times_reported = std::min(file->times_suspended, reports_of_file_max);
    remarks_.push_back(fmt::format("{} {}, and its calls are not counted until it is whole again", file->path,
                                   was_attached ? "is being overwritten: its probes are detached"
                                                : "is open for writing: its probes are not attached"));
    if (file->times_reported == reports_of_file_max)
        remarks_.back() += " (reported for the last time)";
}

void Attacher::attach_again(const Targets::Found& found)
{
    CudaFile* const file = found.files.front();
    const bool known_by_another = found.moved && file->suspended; // its new inode is, and probed already
    for (auto& [key, attachment] : attachments_)
        if (key.first == file) {
            attachment.refused = false;
            link_all(attachment);
        }
    if (found.moved) // processes may map the file that it was before
        for (const pid_t pid : file->users)
            look_at(pid);
    if ((file->suspended && !known_by_another) || file->times_suspended > reports_of_file_max)
        return;
    if (found.moved && !file->users.empty())
        remarks_.push_back(
            fmt::format("{} was copied up by its overlay: processes that mapped it before are counted only "
                        "if another path leads to the old file",
                        file->path));
    if (!found.why.empty())
        remarks_.push_back(fmt::format("{} was overwritten, and is not traced any longer: {}", file->path, found.why));
    else
        remarks_.push_back(fmt::format(
            "{} is whole again: its probes are attached; its calls were not counted for {:.2f} s", file->path,
            std::chrono::duration<double>(FileGuard::Clock::now() - file->suspended_at).count()));
}

} // namespace gpusnoop
