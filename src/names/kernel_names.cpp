// SPDX-License-Identifier: Apache-2.0
#include "names/kernel_names.hpp"

#include "names/kernel_text.hpp"
#include "names/name_messages.hpp"
#include "names/name_search.hpp"
#include "names/scan_worker.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace gpusnoop {
namespace {

constexpr size_t unnamed_max = 4096;   // handles of one process that are looked up: it may make up any number
constexpr size_t entry_bytes = 112;    // of one handle, without its text
constexpr size_t read_early_max = 256; // names of one process that are read before they are needed, one by one
constexpr unsigned failures_max = 3;   // then a handle has no name, until more is known of the files
constexpr std::chrono::milliseconds retry_budget{50}; // of a tick; the rest is looked up in the next one

// As the map of unsent records has it.
struct UnsentKey {
    ImageId image{};
    uint64_t handle = 0;
};

// What came with the record.
std::string name_of(const name_record& record, size_t size)
{
    const char* text = reinterpret_cast<const char*>(&record + 1);
    const size_t there = size > sizeof(record) ? size - sizeof(record) : 0;
    if (record.length <= 0)
        return {};
    return {text, strnlen(text, std::min<size_t>(there, static_cast<size_t>(record.length)))};
}

} // namespace

struct KernelNames::Scan {
    Scan(const ScanWanted& wanted, const Fd& file) : of(wanted), worker(file) {}

    ScanWanted of;
    ScanWorker worker;
};

KernelNames::KernelNames(const std::string& cache_folder, WaitBudget* waits)
    : cache_(cache_folder), helper_({.serve = [](Helper::Task& task) { NameSearch().serve(task); },
                                     .take = [this](Message message) { return take(std::move(message)); },
                                     .begun_anew = [this] { begin_anew(); },
                                     .consequence = "its kernels are given no more names"},
                                    waits)
{}

KernelNames::~KernelNames() = default;

// The more others have, the less one process may take.
bool KernelNames::has_room(Process& process, size_t bytes)
{
    if (process.bytes + bytes > bytes_max - std::min(bytes_, bytes_max))
        return false;
    process.bytes += bytes;
    bytes_ += bytes;
    return true;
}

void KernelNames::release(Process& process, size_t bytes)
{
    process.bytes -= bytes;
    bytes_ -= bytes;
}

void KernelNames::drop_known(Process& process, uint64_t handle)
{
    if (auto known = process.handles.extract(handle))
        release(process, entry_bytes + known.mapped().name.text.size());
}

void KernelNames::drop_unread(Process& process, uint64_t handle)
{
    if (process.unread.erase(handle))
        release(process, entry_bytes);
}

// Null where there is no room.
KernelNames::Known* KernelNames::known_at(Process& process, uint64_t handle)
{
    const auto known = process.handles.find(handle);
    if (known != process.handles.end())
        return &known->second;
    return has_room(process, entry_bytes) ? &process.handles[handle] : nullptr;
}

KernelNames::Unread* KernelNames::unread_at(Process& process, uint64_t handle)
{
    const auto unread = process.unread.find(handle);
    if (unread != process.unread.end())
        return &unread->second;
    return has_room(process, entry_bytes) ? &process.unread[handle] : nullptr;
}

// Null where too many have no name. Those that have none anywhere make room for others.
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

bool KernelNames::set_name(Process& process, uint64_t handle, KernelName name)
{
    Known* const known = known_at(process, handle);
    if (!known || !has_room(process, name.text.size()))
        return false;
    release(process, known->name.text.size());
    known->name = std::move(name);
    return true;
}

// False where it says nothing, or there is no room.
bool KernelNames::set_alias(Process& process, const name_record& record)
{
    // cudart 12 hands out the stub's own address.
    Known* const known = record.alias != record.handle ? known_at(process, record.handle) : nullptr;
    if (!known)
        return false;
    known->alias = record.alias;
    known->correlated = record.source == NAME_CORRELATED;
    return true;
}

void KernelNames::learn(const name_record& record, size_t size)
{
    Process& process = processes_[record.image];
    if (record.alias) {
        if (set_alias(process, record))
            name(record.image, record.handle); // now, as the process may have exited by the time a report needs it
        return;
    }
    const NameSource source = record.source == NAME_LOOKUP ? NameSource::lookup : NameSource::registration;
    std::string text = name_of(record, size);
    if (text.empty() && record.length <= 0)
        learn_unread(record, process, false);
    if (text.empty())
        return;
    drop_unread(process, record.handle);
    if (set_name(process, record.handle, {demangle(text), source}))
        process.handles[record.handle].alias = 0;
    if (source == NameSource::lookup)
        tell({.what = NameQuestion::What::driver,
              .image = record.image,
              .handle = record.handle,
              .name = std::move(text)});
}

// The page of the name was not in memory when the call was made; reading it from outside brings it in. That is done
// before the name is needed, for the process may exit, unless there are thousands of names.
void KernelNames::learn_unread(const name_record& record, Process& process, bool unsent)
{
    drop_known(process, record.handle);
    Unread* const unread = unread_at(process, record.handle);
    if (!unread)
        return;
    const NameSource source = record.source == NAME_LOOKUP ? NameSource::lookup : NameSource::registration;
    *unread = {.address = record.name_address, .source = source, .unsent = unsent};
    if (!unsent && process.read_early < read_early_max) {
        process.read_early++;
        look_up(record.image, process, record.handle);
    }
}

const KernelName* KernelNames::known_name(const Process& process, uint64_t handle)
{
    const auto known = process.handles.find(handle);
    return known != process.handles.end() && !known->second.name.text.empty() ? &known->second.name : nullptr;
}

Answerer::Outcome KernelNames::look_up(const ImageId& image, Process& process, uint64_t handle)
{
    const NameQuestion question = question_about(image, process, handle);
    const Answerer::Outcome outcome = ask(question);
    // A name that cannot be read where it was: take() has seen to that.
    if (outcome == Answerer::Outcome::answered && question.what == NameQuestion::What::text &&
        !known_name(process, handle))
        return look_up(image, process, handle);
    return outcome;
}

// Where its name lies if that is known, else whatever the process says of it.
NameQuestion KernelNames::question_about(const ImageId& image, const Process& process, uint64_t handle)
{
    const auto unread = process.unread.find(handle);
    const bool at_address = unread != process.unread.end() && unread->second.address;
    return {.what = at_address ? NameQuestion::What::text : NameQuestion::What::kernel,
            .image = image,
            .handle = handle,
            .address = at_address ? unread->second.address : 0,
            .source = at_address ? unread->second.source : NameSource::none};
}

// True where the kernel side has kept a record of it.
bool KernelNames::learn_unsent(const ImageId& image, Process& process, uint64_t handle)
{
    const UnsentKey key{image, handle};
    name_record record{};
    if (unsent_fd_ < 0 || bpf_map_lookup_and_delete_elem(unsent_fd_, &key, &record))
        return false;
    if (record.alias)
        set_alias(process, record);
    else
        learn_unread(record, process, true);
    return true;
}

// As many as there is time for, so that there is room for others.
void KernelNames::drain_unsent()
{
    const auto until = std::chrono::steady_clock::now() + retry_budget;
    UnsentKey key{}, next{};
    bool more = unsent_fd_ >= 0 && bpf_map_get_next_key(unsent_fd_, nullptr, &key) == 0;
    for (; more && std::chrono::steady_clock::now() < until; key = next) {
        more = bpf_map_get_next_key(unsent_fd_, &key, &next) == 0;
        learn_unsent(key.image, processes_[key.image], key.handle);
    }
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
    Process& process = processes_[image];
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
    // CUfunction -> CUkernel -> runtime handle -> host stub is the longest honest chain.
    if (depth > 4)
        return {};
    if (const KernelName* const name = known_name(process, handle))
        return *name;
    const auto known = process.handles.find(handle);
    KernelName found;
    if (known != process.handles.end() && known->second.alias) {
        const bool correlated = known->second.correlated;
        found = resolve(image, process, known->second.alias, depth + 1);
        if (correlated)
            found.source = std::max(found.source, NameSource::correlation);
    }
    if (found.text.empty())
        return search(image, process, handle);
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
    unnamed->pending = true; // until take() has the answer
    const Answerer::Outcome outcome = look_up(image, process, handle);
    if (const KernelName* const name = known_name(process, handle)) {
        process.unnamed.erase(handle);
        return *name;
    }
    puzzling_.insert(image);
    unnamed->pending = outcome == Answerer::Outcome::pending;
    if (outcome != Answerer::Outcome::refused)
        return {};
    if (helper_.barred(static_cast<pid_t>(image.pid)))
        unnamed->failures++;
    else
        retry_ = true;
    return {};
}

Answerer::Outcome KernelNames::ask(NameQuestion question)
{
    question.scanner_is_free = !scan_;
    return helper_.ask_or_post(static_cast<pid_t>(question.image.pid), message_of(question));
}

void KernelNames::tell(NameQuestion question, int file)
{
    question.scanner_is_free = !scan_;
    helper_.post(static_cast<pid_t>(question.image.pid), message_of(question), file);
}

// What the helper says, which may have been taken over by what it read: whatever that is, it is no more than a name.
bool KernelNames::take(Message message)
{
    auto answer = read_message<NameAnswer>(message.bytes);
    if (!answer || answer->source > NameSource::none)
        return false;
    more_ |= std::exchange(learned_, answer->learned) != answer->learned;
    if (answer->wanted && message.file && !scan_)
        begin_scan(*answer->wanted, message.file);
    const auto found = processes_.find(answer->image);
    if (found == processes_.end())
        return true;
    Process& process = found->second;
    const auto unnamed = process.unnamed.find(answer->handle);
    const bool awaited = unnamed != process.unnamed.end() && std::exchange(unnamed->second.pending, false);
    if (answer->name.empty()) {
        // A text has a source even if it could not be read. What else is known of the handle comes next.
        const auto unread = process.unread.find(answer->handle);
        const bool of_text = answer->source != NameSource::none && unread != process.unread.end();
        if (of_text)
            unread->second.address = 0;
        else if (awaited)
            unnamed->second.failures++;
        retry_ |= of_text && awaited;
        return true;
    }
    if (known_name(process, answer->handle))
        return true; // it was learned meanwhile
    set_name(process, answer->handle, {demangle(answer->name), answer->source});
    drop_unread(process, answer->handle);
    if (answer->source == NameSource::lookup)
        tell({.what = NameQuestion::What::driver,
              .image = answer->image,
              .handle = answer->handle,
              .name = std::move(answer->name)});
    return true;
}

void KernelNames::begin_scan(const ScanWanted& wanted, const Fd& file)
{
    if (const auto cached = cache_.find(wanted.build_id, wanted.file_size))
        tell_scanned(wanted, *cached);
    else
        scan_ = std::make_unique<Scan>(wanted, file);
}

void KernelNames::tell_scanned(const ScanWanted& wanted, const Registrations& found)
{
    const Fd file = in_file(found);
    tell({.what = NameQuestion::What::scanned, .device = wanted.device, .inode = wanted.inode}, file.get());
}

// True where something has been learned: what had no name may have one now.
bool KernelNames::advance()
{
    if (scan_ && scan_->worker.ended()) {
        const std::unique_ptr<Scan> ended = std::exchange(scan_, nullptr);
        const Registrations found = ended->worker.answer().value_or(Registrations());
        if (!found.kernels.empty())
            cache_.keep(ended->of.build_id, ended->of.file_size, found);
        tell_scanned(ended->of, found);
        helper_.wait(); // the next lookup is to know of it
    }
    helper_.hear();
    if (!std::exchange(more_, false))
        return false;
    retry_ = true;
    for (auto& [image, process] : processes_)
        for (auto& [handle, unnamed] : process.unnamed)
            unnamed.failures = 0;
    return true;
}

// Those that fail are set aside once they have failed often enough (failures_max), so the others have their turn.
void KernelNames::retry_unnamed()
{
    const auto until = std::chrono::steady_clock::now() + retry_budget;
    retry_ = false; // unless one is refused
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
        const bool scanned = scan_ && std::ranges::any_of(processes_, is_unnamed);
        if (now >= until || (!helper_.pending() && !scanned && !retry_))
            return;
        const auto next = std::min(until, now + std::chrono::milliseconds(5));
        if (helper_.wait_until(next))
            std::this_thread::sleep_until(next);
    }
}

// What had no name gets another chance, for the same may be known sooner.
void KernelNames::begin_anew()
{
    more_ = true;
    learned_ = 0;
    for (auto& [image, process] : processes_)
        for (auto& [handle, unnamed] : process.unnamed)
            unnamed.pending = false;
}

void KernelNames::expect(pid_t pid)
{
    ask({.what = NameQuestion::What::process, .image = {.pid = static_cast<uint32_t>(pid), .serial = 0}});
}

void KernelNames::tick()
{
    for (auto& [image, process] : processes_)
        process.is_full = false;
    for (const ImageId& image : puzzling_)
        if (processes_.contains(image))
            tell({.what = NameQuestion::What::process, .image = image});
    puzzling_.clear();
    if (!processes_.empty())
        tell({.what = NameQuestion::What::second});
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
        tell({.what = NameQuestion::What::forget, .image = image});
    }
    puzzling_.erase(image);
}

} // namespace gpusnoop
