// SPDX-License-Identifier: Apache-2.0
#include "names/kernel_names.hpp"

#include "names/name_search.hpp"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace gpusnoop {
namespace {

constexpr size_t unnamed_max = 4096; // handles per process; limited because a process may invent any number of them
constexpr unsigned failures_max = 3; // after this many failed lookups, a handle waits until the helper learns more

} // namespace

KernelNames::KernelNames(const std::string& cache_folder, WaitBudget* waits)
    : cache_(cache_folder), reader_({.serve = serve_in_sandbox<NameSearch>(),
                                     .apply = [this](Message message) { return apply(std::move(message)); },
                                     .restarted = [this] { on_restart(); },
                                     .consequence = "its kernels are no longer named"},
                                    waits)
{}

KernelNames::~KernelNames() = default;

// If the process has too many unnamed handles, removes those whose lookups have failed. Returns null if there is still
// no room.
KernelNames::Unnamed* KernelNames::unnamed_at(Process& process, uint64_t handle)
{
    const auto unnamed = process.unnamed.find(handle);
    if (unnamed != process.unnamed.end())
        return &unnamed->second;
    if (process.unnamed.size() >= unnamed_max) {
        if (process.is_full)
            return nullptr;
        count_lost(process);
        std::erase_if(process.unnamed, [](const auto& entry) { return entry.second.failures >= failures_max; });
        process.is_full = true;
    }
    return process.unnamed.size() >= unnamed_max ? nullptr : &process.unnamed[handle];
}

// Asks the helper to demangle the name. The first call for a name waits for the answer; later calls only poll for it.
void KernelNames::demangle(const ImageId& image, Process& process, uint64_t handle, Known& known)
{
    if (known.asked && std::exchange(known.awaited, true))
        return reader_.poll();
    if (known.asked) {
        reader_.wait();
        return;
    }
    if (const auto readable = readable_.find(known.name.text); readable != readable_.end())
        return set_readable(process, known, readable->second);
    known.asked = known.awaited = true; // apply() resets `asked` when the name arrives
    const Reader::Outcome outcome = ask({.kind = NameQuestion::Kind::name,
                                         .image = image,
                                         .handle = handle,
                                         .name = known.name.text,
                                         .source = known.name.source});
    if (outcome != Reader::Outcome::refused || !known.name.is_mangled)
        return;
    known.asked = false;
    if (reader_.is_blocked(static_cast<pid_t>(image.pid))) {
        known.name.is_mangled = false; // give up demangling, and show the mangled name
    } else {
        process.mangled.insert(handle);
        retry_ = true;
    }
}

const KernelName* KernelNames::known_name(const Process& process, uint64_t handle)
{
    const auto known = process.handles.find(handle);
    return known != process.handles.end() && !known->second.name.text.empty() ? &known->second.name : nullptr;
}

Reader::Outcome KernelNames::look_up(const ImageId& image, Process& process, uint64_t handle)
{
    const NameQuestion question = question_about(image, process, handle);
    const Reader::Outcome outcome = ask(question);
    // If the name could not be read at its address, apply() has cleared the address, so the next question asks the
    // helper to search for the name.
    if (outcome == Reader::Outcome::answered && question.kind == NameQuestion::Kind::text &&
        !known_name(process, handle))
        return look_up(image, process, handle);
    return outcome;
}

// Returns a question that asks the helper to read the name if the name's address is known, or else to search for it.
NameQuestion KernelNames::question_about(const ImageId& image, const Process& process, uint64_t handle)
{
    const auto unread = process.unread.find(handle);
    const bool at_address = unread != process.unread.end() && unread->second.address;
    return {.kind = at_address ? NameQuestion::Kind::text : NameQuestion::Kind::kernel,
            .image = image,
            .handle = handle,
            .address = at_address ? unread->second.address : 0,
            .source = at_address ? unread->second.source : NameSource::none};
}

void KernelNames::count_lost(Process& process)
{
    for (const auto& [handle, unnamed] : process.unnamed)
        if (const auto unread = process.unread.find(handle); unread != process.unread.end())
            lost_ += std::exchange(unread->second.unsent, false);
}

uint64_t KernelNames::lost_since_last()
{
    for (auto& [image, process] : processes_)
        count_lost(process);
    return std::exchange(lost_, 0);
}

std::optional<KernelName> KernelNames::name(const ImageId& image, uint64_t handle)
{
    Process& process = process_of(image);
    KernelName found = resolve(image, process, handle, 0);
    if (found.text.empty() && advance())
        found = resolve(image, process, handle, 0);
    if (found.text.empty())
        return std::nullopt;
    process.unnamed.erase(handle);
    return found;
}

KernelName KernelNames::resolve(const ImageId& image, Process& process, uint64_t handle, int depth)
{
    // The longest valid chain of aliases is CUfunction -> CUkernel -> runtime handle -> host stub.
    if (depth > 4)
        return {};
    const auto known = process.handles.find(handle);
    if (known != process.handles.end() && !known->second.name.text.empty()) {
        Known& named = known->second; // the reference stays valid while other handles are added
        if (named.name.is_mangled)
            demangle(image, process, handle, named);
        return named.name;
    }
    KernelName found;
    if (known != process.handles.end() && known->second.alias) {
        const bool correlated = known->second.correlated;
        found = resolve(image, process, known->second.alias, depth + 1);
        if (correlated)
            found.source = std::max(found.source, NameSource::correlation);
    }
    if (found.text.empty())
        return search(image, process, handle);
    if (!found.is_mangled)
        set_name(process, handle, found);
    return found;
}

KernelName KernelNames::search(const ImageId& image, Process& process, uint64_t handle)
{
    Unnamed* const unnamed = handle ? unnamed_at(process, handle) : nullptr;
    if (!unnamed || unnamed->pending || unnamed->failures >= failures_max)
        return {};
    if (learn_unsent(image, process, handle))
        return resolve(image, process, handle, 1);
    unnamed->pending = true; // until apply() has the answer
    const Reader::Outcome outcome = look_up(image, process, handle);
    if (const KernelName* const name = known_name(process, handle)) {
        process.unnamed.erase(handle);
        return *name;
    }
    with_unnamed_.insert(image);
    unnamed->pending = outcome == Reader::Outcome::pending;
    if (outcome != Reader::Outcome::refused)
        return {};
    if (reader_.is_blocked(static_cast<pid_t>(image.pid)))
        unnamed->failures++;
    else
        retry_ = true;
    return {};
}

Reader::Outcome KernelNames::ask(NameQuestion question)
{
    question.scanner_is_free = !scan_;
    return reader_.ask_or_post(static_cast<pid_t>(question.image.pid), message_of(question));
}

bool KernelNames::post(NameQuestion question, int file)
{
    question.scanner_is_free = !scan_;
    return reader_.post(static_cast<pid_t>(question.image.pid), message_of(question), file);
}

// A malicious file may have taken control of the helper, so an answer can only set a name or request a scan.
bool KernelNames::apply(Message message)
{
    auto answer = read_message<NameAnswer>(message.bytes);
    if (!answer || answer->source > NameSource::none)
        return false;
    learned_more_ |= std::exchange(learned_, answer->learned) != answer->learned;
    if (answer->wanted && message.file && !scan_)
        begin_scan(*answer->wanted, message.file);
    const auto found = processes_.find(answer->image);
    if (found == processes_.end())
        return true;
    Process& process = found->second;
    const auto unnamed = process.unnamed.find(answer->handle);
    const bool awaited = unnamed != process.unnamed.end() && std::exchange(unnamed->second.pending, false);
    if (answer->name.empty()) {
        // An answer without a name but with a source belongs to a question of kind `text`: the helper could not read
        // the name at the address. Clearing the address makes the next question a search.
        const auto unread = process.unread.find(answer->handle);
        const bool of_text = answer->source != NameSource::none && unread != process.unread.end();
        if (of_text)
            unread->second.address = 0;
        else if (awaited)
            unnamed->second.failures++;
        retry_ |= of_text && awaited;
        return true;
    }
    const auto known = process.handles.find(answer->handle);
    if (known == process.handles.end() || known->second.name.text.empty()) {
        set_name(process, answer->handle, {std::move(answer->name), answer->source});
        drop_unread(process, answer->handle);
    } else if (Known& named = known->second; // a known name is kept; the answer may add its readable form
               named.name.is_mangled && answer->name_hash == std::hash<std::string>()(named.name.text)) {
        keep_readable(named.name.text, answer->name);
        set_readable(process, named, answer->name);
    }
    return true;
}

void KernelNames::begin_scan(const ScanWanted& wanted, const Fd& file)
{
    if (const auto cached = cache_.find(wanted.build_id, wanted.file_size))
        post_scan_result(wanted, *cached);
    else if (scanner_.begin(wanted.pid, file))
        scan_ = wanted;
    else if (scanner_.is_blocked(wanted.pid))
        post_scan_result(wanted, {}); // the empty result keeps the name helper from requesting the scan again
}

void KernelNames::post_scan_result(const ScanWanted& wanted, const Registrations& found)
{
    const Fd file = to_memfd(found);
    post({.kind = NameQuestion::Kind::scanned, .device = wanted.device, .inode = wanted.inode}, file.get());
}

// Processes the results of scans and lookups. Returns true if lookups that failed before may succeed now.
bool KernelNames::advance()
{
    if (scan_ && scanner_.ended()) {
        const ScanWanted ended = *std::exchange(scan_, std::nullopt);
        const Registrations found = scanner_.answer().value_or(Registrations());
        if (!found.kernels.empty())
            cache_.keep(ended.build_id, ended.file_size, found);
        post_scan_result(ended, found);
        reader_.wait(); // wait for the name helper to process the scan result, so that the next lookup uses it
    }
    reader_.poll();
    if (!std::exchange(learned_more_, false))
        return false;
    retry_ = true;
    for (auto& [image, process] : processes_)
        for (auto& [handle, unnamed] : process.unnamed)
            unnamed.failures = 0;
    return true;
}

// Looks up unnamed handles again, except handles whose lookups have failed failures_max times.
void KernelNames::retry_unnamed()
{
    const auto until = std::chrono::steady_clock::now() + retry_budget;
    retry_ = false; // search() and demangle() set it again if the helper refuses a question
    for (auto& [image, process] : processes_) {
        std::vector<uint64_t> due;
        for (const auto& [handle, unnamed] : process.unnamed)
            if (!unnamed.pending && unnamed.failures < failures_max)
                due.push_back(handle);
        for (const uint64_t handle : due) {
            if (std::chrono::steady_clock::now() >= until) {
                retry_ = true;
                return;
            }
            if (!resolve(image, process, handle, 0).text.empty())
                process.unnamed.erase(handle);
        }
        for (const uint64_t handle : std::exchange(process.mangled, {}))
            if (std::chrono::steady_clock::now() < until)
                resolve(image, process, handle, 0);
            else
                retry_ = process.mangled.insert(handle).second;
    }
}

void KernelNames::finish(std::chrono::milliseconds patience)
{
    const auto is_unnamed = [](const auto& entry) { return !entry.second.unnamed.empty(); };
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
        advance();
        if (retry_)
            retry_unnamed();
        const auto now = std::chrono::steady_clock::now();
        const bool scanning = scan_.has_value() && std::ranges::any_of(processes_, is_unnamed);
        if (now >= until || (!reader_.is_pending() && !scanning && !retry_))
            return;
        const auto next = std::min(until, now + std::chrono::milliseconds(5));
        if (reader_.wait_until(next))
            std::this_thread::sleep_until(next);
    }
}

// A new helper process does not have what the previous one had learned, so all lookups are retried.
void KernelNames::on_restart()
{
    learned_more_ = true;
    learned_ = 0;
    for (auto& [image, process] : processes_) {
        for (auto& [handle, unnamed] : process.unnamed)
            unnamed.pending = false;
        for (auto& [handle, known] : process.handles)
            if (std::exchange(known.asked, false))
                process.mangled.insert(handle);
    }
}

void KernelNames::expect(pid_t pid)
{
    ask({.kind = NameQuestion::Kind::process, .image = {.pid = static_cast<uint32_t>(pid), .serial = 0}});
}

void KernelNames::tick()
{
    for (auto& [image, process] : processes_)
        process.is_full = false;
    for (const ImageId& image : with_unnamed_)
        if (processes_.contains(image))
            post({.kind = NameQuestion::Kind::process, .image = image});
    with_unnamed_.clear();
    if (!processes_.empty())
        post({.kind = NameQuestion::Kind::tick});
    drain_unsent();
    advance();
    if (retry_)
        retry_unnamed();
}

void KernelNames::forget(const ImageId& image)
{
    if (const auto process = processes_.find(image); process != processes_.end()) {
        count_lost(process->second);
        bytes_ -= process->second.bytes;
        processes_.erase(process);
        post({.kind = NameQuestion::Kind::forget, .image = image});
    }
    with_unnamed_.erase(image);
}

} // namespace gpusnoop
