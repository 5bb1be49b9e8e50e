// SPDX-License-Identifier: Apache-2.0
#include "code/pending_calls.hpp"

#include "base/error.hpp"
#include "bpf/shared/stack.h"
#include "code/decoder.hpp"
#include "code/unwinder.hpp"
#include "proc/cuda_libraries.hpp"

#include <cstring>
#include <fmt/format.h>
#include <new>
#include <set>
#include <unordered_map>

namespace gpusnoop {

void StackCopyUnwinder::serve(Helper::Task& task)
{
    answer_each<StackCopyQuestion>(task, [&](const StackCopyQuestion& question) {
        task.set_status(fmt::format("the stacks of process {}", question.pid));
        return answer(question);
    });
}

StackCopyAnswer StackCopyUnwinder::answer(const StackCopyQuestion& question)
{
    StackCopyAnswer answer{.stack = question.stack, .again = (question.at & COPIED_AGAIN) != 0};
    const uint32_t at = question.at & ~uint32_t{COPIED_AGAIN};
    if (!question.pid || question.bytes.size() < sizeof(uint64_t))
        return answer;
    if (modules_.full())
        modules_.forget();
    try {
        ProcessImage image(static_cast<pid_t>(question.pid), modules_);
        const uint64_t top = question.thread.sp;
        image.use_copy(top, question.bytes);
        for (const PendingCallsQuestion::Replaced& replaced : question.thread.replaced)
            image.replace_return(replaced.slot, replaced.address);
        FrameRegisters registers = registers_of(question.thread);
        if (at == COPIED_AT_ENTRY)
            unwind_entry(image, registers);
        const std::vector<StackFrame> frames =
            unwind(image, registers, at == COPIED_ANYWHERE ? FirstFrame::at_instruction : FirstFrame::after_call);
        for (const StackFrame& frame : frames)
            if (answer.callers.size() < StackCopyAnswer::callers_max)
                answer.callers.push_back(frame.address);
        answer.cut = image.read_past_copy();
    } catch (const std::bad_alloc&) { // frees memory for the next process
        modules_.forget();
    } catch (const Error&) {}
    return answer;
}

int32_t UnwoundStacks::number_of(const std::vector<uint64_t>& addresses)
{
    if (addresses.empty())
        return -1;
    if (const auto known = numbers_.find(addresses); known != numbers_.end())
        return known->second;
    if (stacks_.size() == max_stacks)
        return -1;
    const auto added = numbers_.emplace(addresses, first + static_cast<int32_t>(stacks_.size())).first;
    stacks_.emplace_back(added->first);
    return added->second;
}

std::span<const uint64_t> UnwoundStacks::of(int32_t number) const
{
    const auto at = static_cast<size_t>(number - first);
    return is(number) && at < stacks_.size() ? stacks_[at] : std::span<const uint64_t>();
}

namespace {

constexpr size_t thunk_bytes = 48; // size of a thunk on arm64, where thunks are longest

// Returns the ELF virtual address of the pointer that the function jumps through, or 0 if it is not a thunk. Reads the
// code from the file, because the code in memory may contain a probe.
uint64_t slot_of(const Elf& elf, const Symbol& function)
{
    const std::vector<uint8_t> code = elf.bytes(function.file_offset, thunk_bytes);
    const auto jump = host_decoder().thunk_jump({code, function.address});
    return jump ? jump->target : 0;
}

} // namespace

void PendingCallSearch::serve(Helper::Task& task)
{
    answer_each<PendingCallsQuestion>(task, [&](const PendingCallsQuestion& question) {
        task.set_status(fmt::format("the stacks of process {}", question.pid));
        return answer(question);
    });
}

// Adds the entry points of the traced functions that this code's file defines. Only files that the tools probe are
// searched (attach/file_search.hpp): CUDA's libraries, and files that may be statically linked with the CUDA runtime.
void PendingCallSearch::add_entries(ProcessImage& image, const ProcessImage::Code& code, Entries& entries)
{
    const auto [known, added] = defined_.try_emplace(code.module);
    if (added) {
        const Elf& elf = code.module->elf;
        const bool main = code.mapping == image.mappings().data();
        const std::string& path = code.mapping->path;
        std::unordered_map<std::string_view, uint32_t> numbers;
        std::vector<std::string_view> names;
        for (uint32_t i = 0; i < symbols_.size(); i++)
            if (!symbols_[i].empty() && numbers.emplace(symbols_[i], i + 1).second)
                names.push_back(symbols_[i]);
        if (main || is_cuda(path) || is_nccl(path) || is_memfd(path) || elf.has_section(".nvFatBinSegment") ||
            elf.has_section(".nv_fatbin"))
            for (const Symbol& symbol : elf.functions(names))
                known->second.push_back({symbol.address, slot_of(elf, symbol), numbers.at(symbol.name)});
    }
    // If several names have the same address, the stack does not show which of them was called. The shortest name is
    // used.
    const auto add = [&](uint64_t address, uint32_t number) {
        const auto [entry, is_new] = entries.emplace(address, number);
        if (!is_new && symbols_[number - 1].size() < symbols_[entry->second - 1].size())
            entry->second = number;
    };
    for (const Function& function : known->second) {
        add(function.address + code.bias, function.number);
        if (const auto target = function.slot ? image.word(function.slot + code.bias) : std::nullopt)
            add(*target, function.number);
    }
}

// Nested calls are not reported, because the program is waiting for the outermost call.
PendingCall PendingCallSearch::outermost_call(std::span<const StackFrame> frames, const Entries& entries) const
{
    PendingCall found;
    size_t caller = frames.size();
    for (size_t i = 0; i + 1 < frames.size(); i++) {
        const StackFrame& frame = frames[i];
        if (!frame.code.module)
            continue;
        const auto start = frame.code.module->frames.function_start(frame.inside() - frame.code.bias);
        const auto entry = start ? entries.find(*start + frame.code.bias) : entries.end();
        if (entry == entries.end())
            continue;
        caller = i + 1;
        found.probe = entry->second;
        found.stack = frames[caller].stack;
    }
    for (size_t i = caller; i < frames.size() && found.callers.size() < PendingCall::callers_max; i++)
        found.callers.push_back(frames[i].address);
    return found;
}

PendingCallsAnswer PendingCallSearch::answer(const PendingCallsQuestion& question)
{
    if (modules_.full()) {
        defined_.clear();
        modules_.forget();
    }
    PendingCallsAnswer answer{.pid = question.pid, .calls = std::vector<PendingCall>(question.threads.size())};
    try {
        ProcessImage image(static_cast<pid_t>(question.pid), modules_);
        Entries entries;
        std::set<const Module*> searched;
        for (size_t i = 0; i < question.threads.size(); i++) {
            for (const PendingCallsQuestion::Replaced& replaced : question.threads[i].replaced)
                image.replace_return(replaced.slot, replaced.address);
            const std::vector<StackFrame> frames = unwind(image, registers_of(question.threads[i]));
            for (const StackFrame& frame : frames)
                if (frame.code.module && searched.insert(frame.code.module.get()).second)
                    add_entries(image, frame.code, entries);
            answer.calls[i] = outermost_call(frames, entries);
        }
    } catch (const std::bad_alloc&) {
        // The calls of the remaining threads stay unknown. Free memory for the next question.
        defined_.clear();
        modules_.forget();
    } catch (const Error&) {}
    return answer;
}

} // namespace gpusnoop
