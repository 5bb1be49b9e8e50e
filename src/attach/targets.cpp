// SPDX-License-Identifier: Apache-2.0
#include "attach/targets.hpp"

#include "attach/searcher.hpp"
#include "base/error.hpp"
#include "proc/cuda_libraries.hpp"
#include "proc/process.hpp"

#include "bpf/shared/attach.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <memory>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t searchers_max = 4;
constexpr long searchers_of_slow_max = 2; // the others are for other users
constexpr Clock::duration slow = 50ms;    // then others need not wait for it
constexpr Clock::duration postponed_for = 500ms;
constexpr Clock::duration hanging = 3s;    // without a word
constexpr Clock::duration between = 200ms; // more than that between two looks, and it is we who have been stopped

// A file that cannot be examined yet.
ExaminedFile unknown(Library library)
{
    ExaminedFile file;
    file.cuda = true;
    file.library = library;
    return file;
}

} // namespace

std::string CudaFile::open_path() const
{
    return fmt::format("/proc/self/fd/{}", file.get());
}

Targets::Targets(std::span<const Probe> probes, bool count_runtime)
    : probes_(probes), search_(probes, count_runtime), helpers_have_said_(epoll_create1(EPOLL_CLOEXEC))
{
    for (const int fd : {writes_.lease_descriptor(), writes_.watch_descriptor()}) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = fd;
        if (helpers_have_said_ && fd >= 0)
            epoll_ctl(helpers_have_said_.get(), EPOLL_CTL_ADD, fd, &event);
    }
    if (!helpers_have_said_)
        throw Error("helpers cannot be watched: " + errno_text(errno));
}

Targets::~Targets() = default;

bool Targets::interesting(std::string_view path, uint64_t device, uint64_t inode) const
{
    const FileSearch::Key key(device, inode);
    return (search_.named(path) || ((search_.in_any_file() || is_memfd(path)) && !search_.boring(key))) &&
           !search_.refused(key);
}

bool Targets::looking() const
{
    return std::ranges::any_of(searchers_, [](const Searcher& s) { return s.request.has_value(); });
}

bool Targets::ready()
{
    return free_one() != nullptr;
}

Targets::Searcher* Targets::free_one()
{
    const auto idle = std::ranges::find_if(searchers_, [](const Searcher& s) { return !s.request; });
    if (idle != searchers_.end())
        return &*idle;
    const auto now = Clock::now();
    if (searchers_.size() >= searchers_max ||
        !std::ranges::all_of(searchers_, [now](const Searcher& s) { return now - s.begun >= slow; }))
        return nullptr;
    Searcher& added = searchers_.emplace_back(search_);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = added.helper.connection().descriptor();
    int error = added.helper.error();
    if (!error && epoll_ctl(helpers_have_said_.get(), EPOLL_CTL_ADD, event.data.fd, &event))
        error = errno;
    if (!error) {
        start_error_ = 0;
        return &added;
    }
    searchers_.pop_back();
    if (searchers_.empty() && !std::exchange(start_error_, error) && found_all_)
        complain(fmt::format("cannot start a helper process: {}; retrying", errno_text(error)));
    return nullptr;
}

void Targets::ask(Searcher& searcher, SearchRequest request, int file)
{
    searcher.begun = searcher.looked_at = Clock::now();
    searcher.silent = {};
    searcher.busy_before_ns = searcher.busy_ns();
    searcher.user = request.pid ? owner_of(request.pid).value_or(0) : 0;
    request.dropped = files_.dropped();
    searcher.request = std::move(request);
    if (searcher.again)
        file = searcher.again->file.get();
    searcher.helper.connection().send(message_of(*searcher.request), file, true); // where that fails, it is lost soon
}

// Users whose files are slow get half of the helpers at most.
bool Targets::has_turn(uint64_t user) const
{
    const auto now = Clock::now();
    const auto is_slow = [&](const Searcher& s) { return s.is_for(slow_users_, now); };
    return !slow_users_.include(user, now) || std::ranges::count_if(searchers_, is_slow) < searchers_of_slow_max;
}

void Targets::look(pid_t pid, bool in_reach)
{
    if (culprits_.include(pid)) {
        found_.push_back({.pid = pid, .in_reach = in_reach, .files = {}, .ended = true});
        return;
    }
    if (!has_turn(owner_of(pid).value_or(0))) { // later, as if it had been slow again
        found_.push_back(
            {.pid = pid, .in_reach = in_reach, .files = {}, .ended = true, .all = false, .took = postponed_for});
        return;
    }
    if (Searcher* const searcher = free_one())
        ask(*searcher, {.what = in_reach ? SearchRequest::What::in_reach : SearchRequest::What::mapped,
                        .pid = pid,
                        .questions = {}});
}

void Targets::look(Held held)
{
    if (culprits_.include(held.pid)) {
        found_.push_back({.pid = held.pid, .files = {}, .ended = true, .held = held.id});
        return;
    }
    Searcher* const searcher = free_one();
    if (!searcher)
        return;
    searcher->held = held.id;
    ask(*searcher,
        {.what = held.file ? SearchRequest::What::opened : SearchRequest::What::mapped,
         .pid = held.pid,
         .questions = {},
         .path = std::move(held.path)},
        held.file.get());
}

std::vector<Targets::Found> Targets::found(std::chrono::milliseconds longest)
{
    hear_all(found_.empty() ? longest : 0ms);
    const auto now = Clock::now();
    for (auto next = searchers_.begin(); next != searchers_.end();) {
        Searcher& searcher = *next++;
        if (!searcher.request)
            continue;
        searcher.silent += std::min(now - std::exchange(searcher.looked_at, now), between);
        if (searcher.silent > hanging) {
            lose(searcher);
            break; // others may have gone with it
        }
    }
    return std::exchange(found_, {});
}

std::vector<Targets::Found> Targets::found_all(std::vector<Look>& looks, std::chrono::milliseconds time,
                                               const std::function<void()>& step)
{
    std::vector<Found> all;
    std::vector<Look> of_slow;
    const auto begun = Clock::now();
    auto heard = begun;
    size_t next = 0;
    const auto waits = [&] {
        const auto now = Clock::now();
        return std::ranges::any_of(searchers_,
                                   [&](const Searcher& s) { return s.request && !s.is_for(slow_users_, now); });
    };
    // A machine that is busy takes its time for each; one process that hangs takes it from none.
    while ((next < looks.size() || waits()) && Clock::now() - heard < time && Clock::now() - begun < 5 * time) {
        step();
        for (; next < looks.size() && ready(); ++next)
            if (slow_users_.include(owner_of(looks[next].pid).value_or(0), Clock::now()))
                of_slow.push_back(looks[next]);
            else
                look(looks[next].pid, looks[next].in_reach);
        if (start_error_)
            throw Error(
                fmt::format("cannot start a helper process: {}", errno_text(start_error_)),
                start_error_ == EAGAIN
                    ? "raise the limit of tasks: pids.max of the cgroup (TasksMax= of a systemd service), ulimit -u"
                    : "");
        for (Found& some : found(10ms)) {
            if (some.ended && !some.all)
                looks.push_back({some.pid, some.in_reach});
            if (!some.lost) // each look has got on by a file at least
                heard = Clock::now();
            all.push_back(std::move(some));
        }
    }
    looks.erase(looks.begin(), looks.begin() + static_cast<std::ptrdiff_t>(next));
    looks.insert(looks.end(), of_slow.begin(), of_slow.end());
    for (const Searcher& searcher : searchers_)
        if (searcher.request && searcher.request->pid)
            looks.push_back({searcher.request->pid, searcher.request->what == SearchRequest::What::in_reach});
    found_all_ = true;
    return all;
}

std::string Targets::not_in_time(std::span<const Look> left)
{
    std::set<pid_t> processes;
    for (const Look& look : left)
        if (!look.in_reach)
            processes.insert(look.pid);
    if (processes.empty())
        return {};
    return fmt::format("{} could not be looked at in time, as files take long to be read",
                       processes.size() == 1
                           ? fmt::format("process {}", *processes.begin())
                           : fmt::format("{} processes ({} is one)", processes.size(), *processes.begin()));
}

void Targets::hear_all(std::chrono::milliseconds longest)
{
    std::array<epoll_event, searchers_max> events{};
    for (int rounds = 0; rounds < 256; rounds++, longest = 0ms) {
        const int n =
            epoll_wait(helpers_have_said_.get(), events.data(), events.size(), static_cast<int>(longest.count()));
        for (int i = 0; i < n; i++) {
            const int fd = events.at(static_cast<size_t>(i)).data.fd;
            if (fd == writes_.lease_descriptor() || fd == writes_.watch_descriptor())
                drain_write_signals();
            const auto searcher = std::ranges::find_if(
                searchers_, [fd](Searcher& s) { return s.helper.connection().descriptor() == fd; });
            if (searcher != searchers_.end() && !hear(*searcher))
                lose(*searcher);
        }
        if (n <= 0)
            return;
    }
}

// One message. False where the helper has ended, or is no longer what it was.
bool Targets::hear(Searcher& searcher)
{
    auto message = searcher.helper.connection().receive(0ms);
    if (!message)
        return !searcher.helper.connection().closed();
    searcher.silent = {};
    auto said = read_message<SearchAnswer>(message->bytes);
    if (!said || !searcher.request)
        return false;
    if (said->candidate && !searcher.examining) {
        const SearchVerdict verdict = judge(searcher, std::move(*said->candidate), std::move(message->file));
        const FileGuard* const guard = searcher.again       ? &searcher.again->guard
                                       : searcher.examining ? &searcher.examining->guard
                                                            : nullptr;
        const int watches = guard && guard->needs_watch() ? writes_.watch_descriptor() : -1;
        return searcher.helper.connection().send(message_of(verdict), watches, true);
    }
    if (said->examined && searcher.examining)
        take_in(searcher, std::move(*said->examined));
    else if (said->end && !searcher.examining)
        end(searcher, *said->end);
    else
        return false;
    return true;
}

SearchVerdict Targets::judge(Searcher& searcher, FileCandidate candidate, Fd where)
{
    const FileSearch::Key key(candidate.device, candidate.inode);
    if (!where) {
        if (search_.named(candidate.path) && !std::exchange(limit_told_, true))
            complain(fmt::format("{} (process {}): {}", candidate.path, searcher.request->pid, errno_text(EMFILE)));
        return {};
    }
    if (search_.boring(key) && !search_.named(candidate.path) && !searcher.again)
        return {};
    const FileId id = ids_.of(where.get(), searcher.helper.pid(), candidate.page);
    if (searcher.request->what == SearchRequest::What::again)
        return judge_again(searcher, {std::move(candidate), std::move(where), {id, candidate.changed_ns}, {}});
    if (CudaFile* const known = files_.find(id)) {
        add_found(searcher, known);
        return {.examine = false, .number = known->number};
    }
    const KnownFiles::Seen seen{id, candidate.changed_ns};
    if (files_.useless(seen)) {
        search_.bore(key);
        return {};
    }
    const FileGuard guard(where, id);
    Candidate found{std::move(candidate), std::move(where), seen, guard};
    if (guard.is_open() && search_.named(found.candidate.path)) {
        ExaminedFile nothing_yet = unknown(search_.library_named(found.candidate.path));
        add_file(searcher, std::move(found), std::move(nothing_yet));
        return {};
    }
    searcher.examining = std::move(found);
    return {.examine = true};
}

// Files that have functions to probe stay known, and open.
void Targets::take_in(Searcher& searcher, ExaminedFile examined)
{
    Candidate found = *std::exchange(searcher.examining, std::nullopt);
    if (searcher.request->what == SearchRequest::What::again)
        return take_in_again(std::exchange(searcher.again, nullptr), found.seen.id, std::move(examined));
    const FileCandidate& candidate = found.candidate;
    const pid_t pid = searcher.request->pid;
    found.guard.set_watch(examined.watch);
    if (found.guard.is_broken(found.where, true))
        found.guard.release(found.where);
    const bool may_change = found.guard.is_open() && search_.named(candidate.path); // then this is not its last word
    if (may_change)
        examined = unknown(search_.library_named(candidate.path));
    else if (examined.cuda && examined.complaint.empty() && examined.places.empty() && !examined.missing.empty())
        examined.complaint = fmt::format("defines none of the {} functions looked for", examined.missing.size());
    if (!examined.complaint.empty())
        complain(fmt::format("{} (process {}): {}", candidate.path, pid, examined.complaint));
    if (may_change || (examined.cuda && !examined.places.empty() && believable(examined)))
        return add_file(searcher, std::move(found), std::move(examined));
    search_.bore({candidate.device, candidate.inode});
    if (examined.cuda)
        files_.add_useless(found.seen);
    writes_.remove(found.guard.watch());
}

// One whose bytes may change is suspended from the start.
void Targets::add_file(Searcher& searcher, Candidate found, ExaminedFile examined)
{
    const FileCandidate& candidate = found.candidate;
    const pid_t pid = searcher.request->pid;
    const uint64_t owner = owner_of(pid).value_or(0);
    if (!files_.room_for_one(pid, owner)) {
        search_.bore({candidate.device, candidate.inode});
        files_.add_useless(found.seen);
        writes_.remove(found.guard.watch());
        return;
    }
    auto file = std::make_unique<CudaFile>();
    file->path = candidate.path + (candidate.deleted ? std::string(deleted_suffix) : "");
    file->id = found.seen.id;
    file->library = examined.library;
    file->word = examined.word;
    file->file = std::move(found.where);
    file->guard = found.guard;
    file->places = std::move(examined.places);
    file->missing = std::move(examined.missing);
    file->owner = owner;
    file->mount_namespace = mount_namespace(pid);
    CudaFile& known = files_.add(std::move(file));
    if (known.guard.is_open())
        suspend(&known);
    add_found(searcher, &known);
}

// What a helper says that has been taken over by a file steers nothing else.
bool Targets::believable(const ExaminedFile& examined) const
{
    return examined.places.size() <= probes_.size() && examined.word <= COOKIE_WORD_MAX &&
           std::ranges::all_of(examined.places, [&](const Place& place) {
               return place.probe < probes_.size() && probes_[place.probe].library == examined.library;
           });
}

void Targets::add_found(Searcher& searcher, CudaFile* file)
{
    const SearchRequest& request = *searcher.request;
    if (std::ranges::find(searcher.files, file) != searcher.files.end())
        return;
    searcher.files.push_back(file);
    const bool in_reach = request.what == SearchRequest::What::in_reach;
    if (!in_reach) {
        file->users.insert(request.pid);
        file->mount_namespace = mount_namespace(request.pid);
    }
    found_.push_back({.pid = request.pid, .in_reach = in_reach, .files = {file}});
}

void Targets::end(Searcher& searcher, const SearchEnd& how)
{
    bool all = how.all;
    for (const uint32_t number : how.known) {
        CudaFile* const file = files_.numbered(number);
        if (file)
            add_found(searcher, file);
        all &= file != nullptr; // it was dropped meanwhile
    }
    const SearchRequest request = *std::exchange(searcher.request, std::nullopt);
    slow_users_.searched(searcher.user, searcher.blocked(Clock::now()), Clock::now());
    if (request.what == SearchRequest::What::again) { // a file that was not examined is examined later
        if (CudaFile* const file = std::exchange(searcher.again, nullptr))
            postpone(file);
        return;
    }
    if (request.what == SearchRequest::What::leads) {
        const std::vector<FileId> asked = std::exchange(asked_about_, {});
        for (size_t i = 0; i < asked.size() && i < how.leads.size(); i++)
            if (!how.leads[i])
                lost_.insert(asked[i]);
        return;
    }
    if (how.refused)
        unreadable_.insert(request.pid);
    for (const UnreadableFile& file : how.unreadable)
        report_unreadable(request.pid, file);
    found_.push_back({.pid = request.pid,
                      .in_reach = request.what == SearchRequest::What::in_reach,
                      .files = std::exchange(searcher.files, {}),
                      .ended = true,
                      .all = all,
                      .took = Clock::now() - searcher.begun,
                      .held = std::exchange(searcher.held, std::nullopt)});
}

void Targets::report_unreadable(pid_t pid, const UnreadableFile& file)
{
    if (unreadable_files_.size() >= Complaints::max || !unreadable_files_.emplace(file.device, file.inode).second)
        return;
    // FUSE refuses all users but the one who mounted it, root included (fuse_allow_current_process() in fs/fuse/dir.c).
    const std::string_view hint = file.error == EACCES ? " (a FUSE mount needs the option allow_other)" : "";
    complain(fmt::format("{} (process {}) cannot be read, so its calls are not traced: {}{}", file.path, pid,
                         errno_text(file.error), hint));
}

// It hangs or has died. What it was at is not looked at again.
void Targets::lose(Searcher& searcher)
{
    const bool died = searcher.helper.connection().closed();
    const auto [key, path] = FileSearch::told(searcher.helper.at());
    if (const auto request = searcher.request) {
        SearchEnd how;
        if (request->what == SearchRequest::What::leads) {
            for (const SearchRequest::Question& question : request->questions)
                how.leads.push_back(question.path != path); // the others are asked for again
        } else if (request->what == SearchRequest::What::again) {
            if (searcher.again && ++searcher.again->helpers_lost > 1) // something else may have ended the first
                complain(fmt::format("{} was overwritten, and is not traced any longer: {}", searcher.again->path,
                                     died ? "the helper that read it has died" : "it cannot be read within 3 s"));
        } else if (search_.refused(key) || (died && culprits_.forgive(request->pid, key))) {
            how.all = false; // another one has told; or something else may have ended it: it is looked at once more
        } else {
            const bool of_a_file = key != FileSearch::Key();
            if (of_a_file)
                search_.refuse(key);
            else if (request->what == SearchRequest::What::mapped)
                culprits_.hangs(request->pid);
            how.all = !of_a_file;
            culprits_.strike(request->pid, path.empty() ? "its mappings" : path,
                             died ? "the helper that read it has died" : "it cannot be read within 3 s");
        }
        searcher.examining.reset();
        end(searcher, how);
        if (request->what != SearchRequest::What::leads && request->what != SearchRequest::What::again)
            found_.back().lost = true;
    }
    // Nor by the others: those that do nothing now begin anew, with what is known.
    std::erase_if(searchers_, [&](const Searcher& s) { return &s == &searcher || !s.request; });
}

void Targets::drop(CudaFile* file)
{
    lost_.erase(file->id);
    writes_.remove(file->guard.watch());
    for (Searcher& searcher : searchers_) {
        std::erase(searcher.files, file);
        if (searcher.again == file)
            searcher.again = nullptr;
    }
    for (Found& found : found_)
        std::erase(found.files, file);
    files_.drop(file);
}

} // namespace gpusnoop
