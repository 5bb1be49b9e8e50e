// SPDX-License-Identifier: Apache-2.0
#include "attach/targets.hpp"

#include "attach/search.hpp"
#include "base/error.hpp"
#include "proc/cuda_libraries.hpp"
#include "proc/process.hpp"

#include "bpf/shared/probe.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <memory>
#include <sys/epoll.h>
#include <utility>

namespace gpusnoop {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t helpers_max = 4;
constexpr long helpers_for_slow_users_max = 2; // of helpers_max; the rest is for users whose files are not slow to read
constexpr Clock::duration retry_delay = 500ms;

// Placeholder for the results of a file that cannot be examined yet.
ExaminedFile unexamined_file(Library library)
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
    : probes_(probes), search_(probes, count_runtime), epoll_(epoll_create1(EPOLL_CLOEXEC)), reader_(service())
{
    for (const int fd : {writes_.lease_descriptor(), writes_.watch_descriptor()}) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = fd;
        if (epoll_ && fd >= 0)
            epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
    }
    if (!epoll_)
        throw Error("cannot create an epoll instance: " + errno_text(errno));
}

Targets::~Targets() = default;

bool Targets::may_be_cuda(std::string_view path, uint64_t device, uint64_t inode) const
{
    const FileSearch::Key key(device, inode);
    return (search_.has_cuda_name(path) ||
            ((search_.searches_all_files() || is_memfd(path)) && !search_.is_not_cuda(key))) &&
           !search_.is_blocked(key);
}

Reader::Service Targets::service()
{
    return {.sandbox = process_reading_sandbox(FileSearch::memory_bytes),
            .serve = [this](Helper::Task& task) { search_.serve(task); },
            .apply_part = [this](Reader::Part part) { return apply(std::move(part)); },
            .lost = [this](const Reader::Loss& loss) { return on_loss(loss); },
            .watch =
                [this](int descriptor) {
                    epoll_event event{};
                    event.events = EPOLLIN;
                    event.data.fd = descriptor;
                    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) ? errno : 0;
                },
            .consequence = "it is not traced",
            .user_consequence = "other processes of this user are not traced",
            .report = [this](std::string why) { complain(std::move(why)); },
            .processes = helpers_max,
            .questions = 1,
            .limits_shares = false}; // may_use_helper() limits users instead
}

bool Targets::ready()
{
    const bool is_ready = reader_.is_ready();
    const int error = is_ready || reader_.is_running() ? 0 : reader_.start_error();
    if (error && !start_error_ && found_all_)
        complain(fmt::format("cannot start a helper process: {}; retrying", errno_text(error)));
    start_error_ = error;
    return is_ready;
}

// Sends the request to a helper. Returns false if no helper is free.
bool Targets::ask(Search search, int file)
{
    search.request.dropped = files_.dropped();
    if (search.suspended_file)
        file = search.suspended_file->file.get();
    const auto sent = reader_.send(search.request.pid, message_of(search.request), file);
    if (!sent)
        return false;
    search.helper = sent->helper;
    search.user = search.request.pid ? owner_of(search.request.pid).value_or(0) : 0;
    search.begin = Clock::now();
    search.busy_before_ns = Search::busy_ns(search.helper);
    searches_.emplace(sent->question, std::move(search));
    return true;
}

// Users whose files are slow to read may use only half of the helpers.
bool Targets::may_use_helper(uint64_t user)
{
    const auto now = Clock::now();
    const auto is_slow = [&](const auto& search) { return search.second.is_for_slow_user(reader_.blame(), now); };
    return !reader_.blame().is_slow(user, now) ||
           std::ranges::count_if(searches_, is_slow) < helpers_for_slow_users_max;
}

void Targets::scan(pid_t pid, bool installed)
{
    if (reader_.is_blocked(pid)) {
        found_.push_back({.pid = pid, .installed = installed, .files = {}, .ended = true});
        return;
    }
    SearchRequest request{
        .kind = installed ? SearchRequest::Kind::installed : SearchRequest::Kind::mapped, .pid = pid, .questions = {}};
    if (!may_use_helper(owner_of(pid).value_or(0)) || !ask({.request = std::move(request)}))
        found_.push_back( // no helper can be used now: reported as an incomplete scan, which is repeated later
            {.pid = pid, .installed = installed, .files = {}, .ended = true, .complete = false, .took = retry_delay});
}

void Targets::scan(Held held)
{
    if (reader_.is_blocked(held.pid)) {
        found_.push_back({.pid = held.pid, .files = {}, .ended = true, .held = held.id});
        return;
    }
    SearchRequest request{.kind = held.file ? SearchRequest::Kind::opened : SearchRequest::Kind::mapped,
                          .pid = held.pid,
                          .questions = {},
                          .path = std::move(held.path)};
    if (!ask({.request = std::move(request), .held = held.id}, held.file.get()))
        found_.push_back({.pid = held.pid, .files = {}, .ended = true, .complete = false, .held = held.id});
}

std::vector<Targets::Found> Targets::found(std::chrono::milliseconds timeout)
{
    poll(found_.empty() ? timeout : 0ms);
    reader_.poll(); // also detects helpers that hang
    return std::exchange(found_, {});
}

std::vector<Targets::Found> Targets::found_all(std::vector<Scan>& scans, std::chrono::milliseconds time,
                                               const std::function<void()>& step)
{
    std::vector<Found> all;
    std::vector<Scan> of_slow_users;
    const auto begin = Clock::now();
    auto last_progress = begin;
    size_t next = 0;
    const auto has_pending = [&] {
        const auto now = Clock::now();
        return std::ranges::any_of(
            searches_, [&](const auto& search) { return !search.second.is_for_slow_user(reader_.blame(), now); });
    };
    // Any progress restarts the timeout, up to five times `time` in total, so that scans can finish even on a busy
    // machine. A scan that hangs does not delay the others.
    while ((next < scans.size() || has_pending()) && Clock::now() - last_progress < time &&
           Clock::now() - begin < 5 * time) {
        step();
        for (; next < scans.size() && ready(); ++next)
            if (reader_.blame().is_slow(owner_of(scans[next].pid).value_or(0), Clock::now()))
                of_slow_users.push_back(scans[next]);
            else
                scan(scans[next].pid, scans[next].installed);
        if (start_error_)
            throw Error(
                fmt::format("cannot start a helper process: {}", errno_text(start_error_)),
                start_error_ == EAGAIN
                    ? "raise the limit of tasks: pids.max of the cgroup (TasksMax= of a systemd service), ulimit -u"
                    : "");
        for (Found& some : found(10ms)) {
            if (some.ended && !some.complete)
                scans.push_back({some.pid, some.installed});
            if (!some.helper_lost) // the scan has found a file or has ended, which is progress
                last_progress = Clock::now();
            all.push_back(std::move(some));
        }
    }
    scans.erase(scans.begin(), scans.begin() + static_cast<std::ptrdiff_t>(next));
    scans.insert(scans.end(), of_slow_users.begin(), of_slow_users.end());
    for (const auto& [number, search] : searches_)
        if (search.request.pid)
            scans.push_back({search.request.pid, search.request.kind == SearchRequest::Kind::installed});
    found_all_ = true;
    return all;
}

std::string Targets::describe_unfinished(std::span<const Scan> left)
{
    std::set<pid_t> processes;
    for (const Scan& scan : left)
        if (!scan.installed)
            processes.insert(scan.pid);
    if (processes.empty())
        return {};
    return fmt::format("{} could not be scanned in time, as files are slow to read",
                       processes.size() == 1
                           ? fmt::format("process {}", *processes.begin())
                           : fmt::format("{} processes (including process {})", processes.size(), *processes.begin()));
}

void Targets::poll(std::chrono::milliseconds timeout)
{
    std::array<epoll_event, helpers_max + 2> events{};
    for (int rounds = 0; rounds < 256; rounds++, timeout = 0ms) {
        const int n = epoll_wait(epoll_.get(), events.data(), events.size(), static_cast<int>(timeout.count()));
        if (n <= 0)
            return;
        const auto is_of_writers = [&](const epoll_event& event) {
            return event.data.fd == writes_.lease_descriptor() || event.data.fd == writes_.watch_descriptor();
        };
        if (std::any_of(events.begin(), events.begin() + n, is_of_writers))
            drain_write_signals();
        reader_.poll();
    }
}

Reader::Reply Targets::apply(Reader::Part part)
{
    const auto at = searches_.find(part.question);
    auto answer = read_message<SearchAnswer>(part.message.bytes);
    if (!answer || at == searches_.end())
        return Reader::Reply::invalid;
    Search& search = at->second;
    if (answer->candidate && !search.examining) {
        const SearchVerdict verdict = judge(search, std::move(*answer->candidate), std::move(part.message.file));
        const FileGuard* const guard = search.suspended_file ? &search.suspended_file->guard
                                       : search.examining    ? &search.examining->guard
                                                             : nullptr;
        const int watches = guard && guard->needs_watch() ? writes_.watch_descriptor() : -1;
        return part.helper.send(message_of(verdict), watches, true) ? Reader::Reply::partial : Reader::Reply::invalid;
    }
    if (answer->examined && search.examining) {
        apply_examined(search, std::move(*answer->examined));
        return Reader::Reply::partial;
    }
    if (!answer->end || search.examining)
        return Reader::Reply::invalid;
    end(std::move(searches_.extract(at).mapped()), *answer->end);
    return Reader::Reply::complete;
}

SearchVerdict Targets::judge(Search& search, FileCandidate candidate, Fd where)
{
    const FileSearch::Key key(candidate.device, candidate.inode);
    if (!where) {
        if (search_.has_cuda_name(candidate.path) && !std::exchange(open_limit_reported_, true))
            complain(fmt::format("{} (process {}): {}", candidate.path, search.request.pid, errno_text(EMFILE)));
        return {};
    }
    if (search_.is_not_cuda(key) && !search_.has_cuda_name(candidate.path) && !search.suspended_file)
        return {};
    const FileId id = ids_.find(where.get(), search.helper, candidate.page);
    if (search.request.kind == SearchRequest::Kind::reexamine)
        return judge_again(search, {std::move(candidate), std::move(where), {id, candidate.changed_ns}, {}});
    if (CudaFile* const known = files_.find(id)) {
        add_found(search, known);
        return {.examine = false, .number = known->number};
    }
    const KnownFiles::Version version{id, candidate.changed_ns};
    if (files_.is_useless(version)) {
        search_.add_not_cuda(key);
        return {};
    }
    const FileGuard guard(where, id);
    Candidate found{std::move(candidate), std::move(where), version, guard};
    if (guard.is_open() && search_.has_cuda_name(found.candidate.path)) {
        ExaminedFile unexamined = unexamined_file(search_.library_named(found.candidate.path));
        add_file(search, std::move(found), std::move(unexamined));
        return {};
    }
    search.examining = std::move(found);
    return {.examine = true};
}

// Registers the file and keeps it open if it has functions to probe.
void Targets::apply_examined(Search& search, ExaminedFile examined)
{
    Candidate found = *std::exchange(search.examining, std::nullopt);
    if (search.request.kind == SearchRequest::Kind::reexamine)
        return apply_examined_again(std::exchange(search.suspended_file, nullptr), found.version.id,
                                    std::move(examined));
    const FileCandidate& candidate = found.candidate;
    const pid_t pid = search.request.pid;
    found.guard.set_watch(examined.watch);
    if (found.guard.is_broken(found.where, true))
        found.guard.release(found.where);
    // If a writer has the file open, the file is examined again later.
    const bool may_change = found.guard.is_open() && search_.has_cuda_name(candidate.path);
    if (may_change)
        examined = unexamined_file(search_.library_named(candidate.path));
    else if (examined.cuda && examined.complaint.empty() && examined.places.empty() && !examined.missing.empty())
        examined.complaint = fmt::format("defines none of the {} functions to probe", examined.missing.size());
    if (!examined.complaint.empty())
        complain(fmt::format("{} (process {}): {}", candidate.path, pid, examined.complaint));
    if (may_change || (examined.cuda && !examined.places.empty() && is_valid(examined)))
        return add_file(search, std::move(found), std::move(examined));
    search_.add_not_cuda({candidate.device, candidate.inode});
    if (examined.cuda)
        files_.add_useless(found.version);
    writes_.remove(found.guard.watch());
}

// Registers the file. If a writer has the file open, the file is suspended from the start.
void Targets::add_file(Search& search, Candidate found, ExaminedFile examined)
{
    const FileCandidate& candidate = found.candidate;
    const pid_t pid = search.request.pid;
    const uint64_t owner = owner_of(pid).value_or(0);
    if (!files_.has_room(pid, owner)) {
        search_.add_not_cuda({candidate.device, candidate.inode});
        files_.add_useless(found.version);
        writes_.remove(found.guard.watch());
        return;
    }
    auto file = std::make_unique<CudaFile>();
    file->path = candidate.path + (candidate.deleted ? std::string(deleted_suffix) : "");
    file->id = found.version.id;
    file->library = examined.library;
    file->cookie_word = examined.cookie_word;
    file->file = std::move(found.where);
    file->guard = found.guard;
    file->places = std::move(examined.places);
    file->missing = std::move(examined.missing);
    file->owner = owner;
    file->mount_namespace = mount_namespace(pid);
    CudaFile& known = files_.add(std::move(file));
    if (known.guard.is_open())
        suspend(&known);
    add_found(search, &known);
}

// Validates the answer, because a malicious file may have taken over the helper.
bool Targets::is_valid(const ExaminedFile& examined) const
{
    return examined.places.size() <= probes_.size() && examined.cookie_word <= COOKIE_WORD_MAX &&
           std::ranges::all_of(examined.places, [&](const Place& place) {
               return place.probe < probes_.size() && probes_[place.probe].library == examined.library;
           });
}

void Targets::add_found(Search& search, CudaFile* file)
{
    const SearchRequest& request = search.request;
    if (std::ranges::find(search.files, file) != search.files.end())
        return;
    search.files.push_back(file);
    const bool installed = request.kind == SearchRequest::Kind::installed;
    if (!installed) {
        file->users.insert(request.pid);
        file->mount_namespace = mount_namespace(request.pid);
    }
    found_.push_back({.pid = request.pid, .installed = installed, .files = {file}});
}

void Targets::end(Search search, const SearchEnd& result)
{
    bool complete = result.complete;
    for (const uint32_t number : result.known) {
        CudaFile* const file = files_.by_number(number);
        if (file)
            add_found(search, file);
        complete &= file != nullptr; // null if the file was dropped meanwhile
    }
    const SearchRequest& request = search.request;
    reader_.blame().blocked_helper(search.user, search.blocked(Clock::now()), Clock::now());
    if (request.kind == SearchRequest::Kind::reexamine) {
        if (search.suspended_file) // the file was not reexamined
            postpone(search.suspended_file);
        return;
    }
    if (request.kind == SearchRequest::Kind::path_checks) {
        const std::vector<FileId> asked = std::exchange(checked_paths_, {});
        for (size_t i = 0; i < asked.size() && i < result.leads.size(); i++)
            if (!result.leads[i])
                unreachable_.insert(asked[i]);
        return;
    }
    if (result.refused)
        unreadable_.insert(request.pid);
    for (const UnreadableFile& file : result.unreadable)
        report_unreadable(request.pid, file);
    found_.push_back({.pid = request.pid,
                      .installed = request.kind == SearchRequest::Kind::installed,
                      .files = std::move(search.files),
                      .ended = true,
                      .complete = complete,
                      .took = Clock::now() - search.begin,
                      .held = search.held});
}

void Targets::report_unreadable(pid_t pid, const UnreadableFile& file)
{
    if (unreadable_files_.size() >= Complaints::max || !unreadable_files_.emplace(file.device, file.inode).second)
        return;
    // A FUSE mount refuses every user but its owner, root included (fuse_allow_current_process() in fs/fuse/dir.c).
    const std::string_view hint = file.error == EACCES ? " (a FUSE mount needs the option allow_other)" : "";
    complain(fmt::format("{} (process {}) cannot be read, so its calls are not traced: {}{}", file.path, pid,
                         errno_text(file.error), hint));
}

// Called when a helper hangs or has crashed. Blocks the file that the helper was reading. A file is not blocked for the
// first crash, because it may have another cause.
bool Targets::on_loss(const Reader::Loss& loss)
{
    const auto at = searches_.find(loss.question);
    if (at != searches_.end()) {
        Search search = std::move(searches_.extract(at).mapped());
        const SearchRequest& request = search.request;
        const auto [key, path] = FileSearch::parse_status(loss.status);
        SearchEnd result;
        const bool of_process =
            request.kind != SearchRequest::Kind::path_checks && request.kind != SearchRequest::Kind::reexamine;
        if (request.kind == SearchRequest::Kind::path_checks) {
            // The path that the helper was checking counts as unreachable. The other paths are checked again later.
            for (const SearchRequest::Question& question : request.questions)
                result.leads.push_back(question.path != path);
        } else if (request.kind == SearchRequest::Kind::reexamine) {
            if (search.suspended_file && ++search.suspended_file->helpers_lost > 1) // the first loss is ignored
                complain(fmt::format("{} was overwritten and is no longer traced: {}", search.suspended_file->path,
                                     loss.why));
        } else if (search_.is_blocked(key) || (loss.died && reader_.blame().forgive(request.pid, key))) {
            result.complete = false;
        } else {
            const bool of_a_file = key != FileSearch::Key();
            if (of_a_file)
                search_.block(key);
            else if (request.kind == SearchRequest::Kind::mapped)
                reader_.blame().block(request.pid);
            result.complete = !of_a_file;
            reader_.blame().strike(request.pid, loss.user, path.empty() ? "its mappings" : path, loss.why);
        }
        end(std::move(search), result);
        if (of_process)
            found_.back().helper_lost = true;
    }
    reader_.retire_idle(); // new helpers start with the current list of blocked files
    return true;
}

void Targets::drop(CudaFile* file)
{
    unreachable_.erase(file->id);
    writes_.remove(file->guard.watch());
    for (auto& [number, search] : searches_) {
        std::erase(search.files, file);
        if (search.suspended_file == file)
            search.suspended_file = nullptr;
    }
    for (Found& found : found_)
        std::erase(found.files, file);
    files_.drop(file);
}

} // namespace gpusnoop
