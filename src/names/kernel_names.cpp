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

namespace gpusnoop {
namespace {

constexpr size_t handles_max = 100000; // of one process: it may make up as many as it likes
constexpr size_t read_early_max = 256; // names of one process that are read before they are needed, one by one
constexpr unsigned failures_max = 3;   // then a handle has no name, until more is known of the files
constexpr std::chrono::milliseconds retry_budget{100}; // of a tick; the rest is looked up in the next one

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

KernelNames::KernelNames(const std::string& cache_folder)
    : cache_(cache_folder), helper_({.serve = [](Helper::Task& task) { NameSearch().serve(task); },
                                     .take = [this](Message message) { return take(std::move(message)); },
                                     .begun_anew = [this] { begin_anew(); },
                                     .consequence = "its kernels are given no more names"})
{}

KernelNames::~KernelNames() = default;

void KernelNames::learn(const name_record& record, size_t size)
{
    Process& process = processes_[record.image];
    if (process.handles.size() >= handles_max)
        return;
    if (record.alias) {
        if (record.alias == record.handle)
            return; // cudart 12 hands out the stub's own address
        Known& known = process.handles[record.handle];
        known.alias = record.alias;
        known.correlated = record.source == NAME_CORRELATED;
        // Not when somebody asks: the process may have gone by then.
        name(record.image, record.handle);
        return;
    }
    const NameSource source = record.source == NAME_LOOKUP ? NameSource::lookup : NameSource::registration;
    std::string text = name_of(record, size);
    if (text.empty() && record.length <= 0)
        learn_unread(record, process, false);
    if (text.empty())
        return;
    process.unread.erase(record.handle);
    process.handles[record.handle] = {{demangle(text), source}, 0, false};
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
    process.handles.erase(record.handle);
    if (process.unread.size() >= handles_max)
        return;
    const NameSource source = record.source == NAME_LOOKUP ? NameSource::lookup : NameSource::registration;
    process.unread[record.handle] = {.address = record.name_address, .source = source, .unsent = unsent};
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

// True where there is an answer, if only that it has no name.
bool KernelNames::look_up(const ImageId& image, Process& process, uint64_t handle)
{
    const NameQuestion question = question_about(image, process, handle);
    const bool answered = ask(question);
    // The process may have exited by the next lookup.
    if (!answered && process.awaited.insert(handle).second)
        tell(question);
    if (!answered || question.what == NameQuestion::What::kernel || known_name(process, handle))
        return answered;
    process.unread[handle].address = 0; // it cannot be read
    return look_up(image, process, handle);
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
    if (!record.alias)
        learn_unread(record, process, true);
    else if (record.alias != handle && process.handles.size() < handles_max)
        process.handles[handle] = {.name = {}, .alias = record.alias, .correlated = record.source == NAME_CORRELATED};
    return true;
}

// All of them, so that there is room for others.
void KernelNames::drain_unsent()
{
    UnsentKey key{}, next{};
    bool more = unsent_fd_ >= 0 && bpf_map_get_next_key(unsent_fd_, nullptr, &key) == 0;
    for (; more; key = next) {
        more = bpf_map_get_next_key(unsent_fd_, &key, &next) == 0;
        learn_unsent(key.image, processes_[key.image], key.handle);
    }
}

void KernelNames::count_lost(Process& process)
{
    for (const uint64_t handle : process.unnamed)
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
    if (process.handles.size() < handles_max)
        process.handles[handle].name = found;
    return found;
}

KernelName KernelNames::search(const ImageId& image, Process& process, uint64_t handle)
{
    if (!handle)
        return {};
    if (process.unnamed.size() < handles_max)
        process.unnamed.insert(handle);
    const auto failures = process.failures.find(handle);
    if (failures != process.failures.end() && failures->second >= failures_max)
        return {};
    if (learn_unsent(image, process, handle))
        return resolve(image, process, handle, 1);
    const bool answered = look_up(image, process, handle);
    if (const KernelName* const name = known_name(process, handle)) {
        process.unnamed.erase(handle);
        return *name;
    }
    puzzling_.insert(image);
    if (process.failures.size() > handles_max)
        process.failures.clear();
    else if (answered || helper_.barred(static_cast<pid_t>(image.pid)))
        process.failures[handle]++;
    return {};
}

bool KernelNames::ask(NameQuestion question)
{
    question.scanner_is_free = !scan_;
    return helper_.ask(static_cast<pid_t>(question.image.pid), message_of(question));
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
    const auto process = processes_.find(answer->image);
    if (answer->name.empty() || process == processes_.end() || process->second.handles.size() >= handles_max)
        return true;
    KernelName& name = process->second.handles[answer->handle].name;
    if (!name.text.empty())
        return true; // it was learned meanwhile
    name = {demangle(answer->name), answer->source};
    process->second.unread.erase(answer->handle);
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
        process.failures.clear();
    return true;
}

// Those that fail are set aside once they have failed often enough (failures_max), so the others have their turn.
void KernelNames::retry_unnamed()
{
    const auto until = std::chrono::steady_clock::now() + retry_budget;
    for (auto& [image, process] : processes_)
        for (const uint64_t handle : std::exchange(process.unnamed, {}))
            if (std::chrono::steady_clock::now() >= until)
                process.unnamed.insert(handle);
            else
                resolve(image, process, handle, 0);
    retry_ = std::chrono::steady_clock::now() >= until;
}

void KernelNames::finish(std::chrono::milliseconds patience)
{
    const auto is_unnamed = [](const auto& entry) { return !entry.second.unnamed.empty(); };
    const auto until = std::chrono::steady_clock::now() + patience;
    helper_.wait();
    while (scan_ && std::ranges::any_of(processes_, is_unnamed) && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        advance();
    }
}

// What had no name gets another chance, for the same may be known sooner.
void KernelNames::begin_anew()
{
    more_ = true;
    learned_ = 0;
}

void KernelNames::expect(pid_t pid)
{
    ask({.what = NameQuestion::What::process, .image = {.pid = static_cast<uint32_t>(pid), .serial = 0}});
}

void KernelNames::tick()
{
    for (auto& [image, process] : processes_)
        process.awaited.clear();
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
        processes_.erase(process);
        tell({.what = NameQuestion::What::forget, .image = image});
    }
    puzzling_.erase(image);
}

} // namespace gpusnoop
