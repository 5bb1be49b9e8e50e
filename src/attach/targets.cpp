// SPDX-License-Identifier: Apache-2.0
#include "attach/targets.hpp"

#include "proc/cuda_libraries.hpp"
#include "proc/process.hpp"
#include "util/error.hpp"

#include "bpf/shared/attach.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t questions_max = 16; // at a time: paths are up to 4 KiB, a message is up to 128
constexpr Clock::duration time_for_answers = 20ms;
constexpr size_t searchers_max = 4;
constexpr Clock::duration slow = 50ms;     // then others need not wait for it
constexpr Clock::duration hanging = 3s;    // without a word
constexpr Clock::duration between = 200ms; // more than that between two looks, and it is we who have been stopped

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

std::string CudaFile::open_path() const
{
    return fmt::format("/proc/self/fd/{}", file.get());
}

// A helper, and what it has been asked.
struct Targets::Searcher {
    explicit Searcher(FileSearch& search) : helper([&search](Helper::Task& task) { search.serve(task); }) {}

    struct Candidate {
        FileCandidate candidate;
        Fd where;
        KnownFiles::Seen seen;
    };

    Helper helper;
    std::optional<SearchRequest> request;
    std::optional<Candidate> examining;
    std::vector<CudaFile*> files; // of this search
    Clock::time_point begun, looked_at;
    Clock::duration silent{};
};

Targets::Targets(std::span<const Probe> probes, bool count_runtime)
    : probes_(probes), search_(probes, count_runtime), helpers_have_said_(epoll_create1(EPOLL_CLOEXEC))
{
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
    if (added.helper.pid() > 0 && !epoll_ctl(helpers_have_said_.get(), EPOLL_CTL_ADD, event.data.fd, &event)) {
        helpless_ = false;
        return &added;
    }
    searchers_.pop_back();
    if (searchers_.empty() && !std::exchange(helpless_, true) && found_all_)
        complain("no process can be started that looks at the files of others: it is tried again");
    return nullptr;
}

void Targets::ask(Searcher& searcher, SearchRequest request)
{
    searcher.begun = searcher.looked_at = Clock::now();
    searcher.silent = {};
    request.dropped = files_.dropped();
    searcher.request = std::move(request);
    searcher.helper.connection().send(message_of(*searcher.request), -1, true); // where that fails, it is lost soon
}

void Targets::look(pid_t pid, bool in_reach)
{
    if (culprits_.include(pid)) {
        found_.push_back({.pid = pid, .in_reach = in_reach, .files = {}, .ended = true});
        return;
    }
    if (Searcher* const searcher = free_one())
        ask(*searcher, {.what = in_reach ? SearchRequest::What::in_reach : SearchRequest::What::mapped,
                        .pid = pid,
                        .questions = {}});
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
    const auto begun = Clock::now();
    auto heard = begun;
    size_t next = 0;
    // A machine that is busy takes its time for each; one process that hangs takes it from none.
    while ((next < looks.size() || looking()) && Clock::now() - heard < time && Clock::now() - begun < 5 * time) {
        step();
        for (; next < looks.size() && ready(); ++next)
            look(looks[next].pid, looks[next].in_reach);
        if (helpless_)
            throw Error("no process can be started that looks at the files of others",
                        "raise the limit of tasks: pids.max of the cgroup (TasksMax= of a systemd service), ulimit -u");
        for (Found& some : found(10ms)) {
            if (some.ended && !some.all)
                looks.push_back({some.pid, some.in_reach});
            if (!some.lost) // each look has got on by a file at least
                heard = Clock::now();
            all.push_back(std::move(some));
        }
    }
    looks.erase(looks.begin(), looks.begin() + static_cast<std::ptrdiff_t>(next));
    for (const Searcher& searcher : searchers_)
        if (searcher.request && searcher.request->what != SearchRequest::What::leads)
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
            const auto searcher = std::ranges::find_if(searchers_, [&](Searcher& s) {
                return s.helper.connection().descriptor() == events.at(static_cast<size_t>(i)).data.fd;
            });
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
        return searcher.helper.connection().send(message_of(verdict), -1, true);
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
    if (search_.boring(key) && !search_.named(candidate.path))
        return {};
    const FileId id = ids_.of(where.get(), searcher.helper.pid(), candidate.page);
    if (CudaFile* const known = files_.find(id)) {
        add_found(searcher, known);
        return {.examine = false, .number = known->number};
    }
    const KnownFiles::Seen seen{id, candidate.changed_ns};
    if (files_.useless(seen)) {
        search_.bore(key);
        return {};
    }
    searcher.examining = Searcher::Candidate{std::move(candidate), std::move(where), seen};
    return {.examine = true};
}

// Files that have functions to probe stay known, and open.
void Targets::take_in(Searcher& searcher, ExaminedFile examined)
{
    auto [candidate, where, seen] = *std::exchange(searcher.examining, std::nullopt);
    const pid_t pid = searcher.request->pid;
    if (examined.cuda && examined.complaint.empty() && examined.places.empty() && !examined.missing.empty())
        examined.complaint = fmt::format("defines none of the {} functions looked for", examined.missing.size());
    if (!examined.complaint.empty())
        complain(fmt::format("{} (process {}): {}", candidate.path, pid, examined.complaint));
    const uint64_t owner = owner_of(pid).value_or(0);
    if (!examined.cuda || examined.places.empty() || !believable(examined) || !files_.room_for_one(pid, owner)) {
        search_.bore({candidate.device, candidate.inode});
        if (examined.cuda)
            files_.add_useless(seen);
        return;
    }
    auto file = std::make_unique<CudaFile>();
    file->path = candidate.path + (candidate.deleted ? " [deleted]" : "");
    file->id = seen.id;
    file->library = examined.library;
    file->word = examined.word;
    file->file = std::move(where);
    file->places = std::move(examined.places);
    file->missing = std::move(examined.missing);
    file->owner = owner;
    file->mount_namespace = mount_namespace(pid);
    add_found(searcher, &files_.add(std::move(file)));
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
                      .took = Clock::now() - searcher.begun});
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
        if (request->what != SearchRequest::What::leads)
            found_.back().lost = true;
    }
    // Nor by the others: those that do nothing now begin anew, with what is known.
    std::erase_if(searchers_, [&](const Searcher& s) { return &s == &searcher || !s.request; });
}

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
            hear_all(left());
        if (!asked_about_.empty())
            return;
    }
}

void Targets::ask_whether_paths_lead_to(std::span<CudaFile* const> files, size_t count)
{
    Searcher* const searcher = free_one();
    if (!searcher)
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
    ask(*searcher, std::move(request));
}

void Targets::drop(CudaFile* file)
{
    lost_.erase(file->id);
    for (Searcher& searcher : searchers_)
        std::erase(searcher.files, file);
    for (Found& found : found_)
        std::erase(found.files, file);
    files_.drop(file);
}

} // namespace gpusnoop
