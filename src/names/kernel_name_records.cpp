// SPDX-License-Identifier: Apache-2.0
// Part of KernelNames that handles name records from the BPF programs, and the memory budget for names.
#include "names/kernel_names.hpp"

#include "names/demangle.hpp"
#include "names/name_messages.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <cstring>
#include <utility>

namespace gpusnoop {
namespace {

constexpr size_t entry_bytes = 112;     // approximate memory per handle, excluding the name
constexpr size_t asked_early_max = 256; // names per process that are read or demangled before a report needs them
constexpr size_t readable_bytes_max = 8 << 20;

// Key of the BPF map of unsent records.
struct UnsentKey {
    ImageId image{};
    uint64_t handle = 0;
};

// Returns the name that follows the record.
std::string name_of(const name_record& record, size_t size)
{
    const char* text = reinterpret_cast<const char*>(&record + 1);
    const size_t available = size > sizeof(record) ? size - sizeof(record) : 0;
    if (record.length <= 0)
        return {};
    return {text, strnlen(text, std::min<size_t>(available, static_cast<size_t>(record.length)))};
}

} // namespace

// Reserves memory for a name. Returns false if no budget is left: a process may use at most half of what the other
// processes leave free.
bool KernelNames::reserve(Process& process, size_t bytes)
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

// Returns null if the memory budget is exceeded.
KernelNames::Known* KernelNames::known_at(Process& process, uint64_t handle)
{
    const auto known = process.handles.find(handle);
    if (known != process.handles.end())
        return &known->second;
    return reserve(process, entry_bytes) ? &process.handles[handle] : nullptr;
}

KernelNames::Unread* KernelNames::unread_at(Process& process, uint64_t handle)
{
    const auto unread = process.unread.find(handle);
    if (unread != process.unread.end())
        return &unread->second;
    return reserve(process, entry_bytes) ? &process.unread[handle] : nullptr;
}

bool KernelNames::set_name(Process& process, uint64_t handle, KernelName name)
{
    Known* const known = known_at(process, handle);
    if (!known || !reserve(process, name.text.size()))
        return false;
    release(process, known->name.text.size());
    known->name = std::move(name);
    return true;
}

// Stores the alias of a handle. Returns false if the alias is the handle itself, or if the memory budget is exceeded.
bool KernelNames::set_alias(Process& process, const name_record& record)
{
    // In cudart 12, __cudaGetKernel() returns the address of the stub itself, so there is no alias to store.
    Known* const known = record.alias != record.handle ? known_at(process, record.handle) : nullptr;
    if (!known)
        return false;
    known->alias = record.alias;
    known->correlated = record.source == NAME_CORRELATED;
    return true;
}

KernelNames::Process& KernelNames::process_of(const ImageId& image)
{
    const auto [process, is_new] = processes_.try_emplace(image);
    if (is_new)
        reader_.remember(static_cast<pid_t>(image.pid));
    return process->second;
}

void KernelNames::learn(const name_record& record, size_t size)
{
    Process& process = process_of(record.image);
    if (record.alias) {
        if (set_alias(process, record))
            name(record.image, record.handle); // search now, because the process may exit before the next report
        return;
    }
    std::string text = name_of(record, size);
    if (!text.empty())
        learn_text(record, process, std::move(text));
    else if (record.length <= 0)
        learn_unread(record, process, false);
}

void KernelNames::learn_text(const name_record& record, Process& process, std::string text)
{
    const bool by_driver = record.source == NAME_LOOKUP;
    const NameSource source = by_driver ? NameSource::lookup : NameSource::registration;
    drop_unread(process, record.handle);
    Known* known = nullptr;
    if (set_name(process, record.handle, {text, source, may_be_mangled(text)})) {
        known = &process.handles[record.handle];
        known->alias = 0;
        known->asked = false;
        if (const auto readable = readable_.find(text); known->name.is_mangled && readable != readable_.end())
            set_readable(process, *known, readable->second);
    }
    const bool early = known && known->name.is_mangled && process.asked_early < asked_early_max;
    if (!by_driver && !early)
        return;
    process.asked_early += by_driver ? 0 : 1;
    const bool asked = post({.kind = by_driver ? NameQuestion::Kind::driver : NameQuestion::Kind::name,
                             .image = record.image,
                             .handle = record.handle,
                             .name = std::move(text),
                             .source = source});
    if (known) {
        known->asked = asked && known->name.is_mangled;
        known->awaited = false;
        if (!asked && known->name.is_mangled) { // retry soon, because the next report may be the last one
            process.mangled.insert(record.handle);
            retry_ = true;
        }
    }
}

void KernelNames::set_readable(Process& process, Known& known, const std::string& readable)
{
    known.name.is_mangled = known.asked = false;
    if (!reserve(process, readable.size()))
        return;
    release(process, known.name.text.size());
    known.name.text = readable;
}

// Stores the address of a name that the BPF program could not read because the page was not in memory. A read from user
// space loads the page. The first asked_early_max names are read at once, because the process may exit before a report
// needs them.
void KernelNames::learn_unread(const name_record& record, Process& process, bool unsent)
{
    drop_known(process, record.handle);
    Unread* const unread = unread_at(process, record.handle);
    if (!unread)
        return;
    const NameSource source = record.source == NAME_LOOKUP ? NameSource::lookup : NameSource::registration;
    *unread = {.address = record.name_address, .source = source, .unsent = unsent};
    if (!unsent && process.asked_early < asked_early_max) {
        process.asked_early++;
        look_up(record.image, process, record.handle);
    }
}

// Returns true if the handle has a record in the map of unsent records.
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

// Drains the map of unsent records within the time budget, so that it has room for new records.
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

void KernelNames::keep_readable(const std::string& mangled, const std::string& readable)
{
    readable_bytes_ += mangled.size() + readable.size() + entry_bytes;
    if (readable_bytes_ > readable_bytes_max) {
        readable_.clear();
        readable_bytes_ = 0;
    }
    readable_.emplace(mangled, readable);
}

} // namespace gpusnoop
