// SPDX-License-Identifier: Apache-2.0
#include "names/user_stacks.hpp"

#include "base/bpf_map.hpp"
#include "bpf/shared/call.h"
#include "bpf/shared/record.h"
#include "bpf/shared/stack.h"

#include <algorithm>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <chrono>
#include <fmt/format.h>
#include <fnmatch.h>
#include <iterator>
#include <utility>

namespace gpusnoop {
namespace {

constexpr std::chrono::milliseconds waits_at_begin{50};    // limit for all processes together; short, because the tool
                                                           // reads no counters or records during the wait
constexpr uint64_t user_addresses_end = uint64_t{1} << 56; // 56 bits with five levels of page tables, 47 with four

// Appends addresses up to the first invalid one. In code without frame pointers, the kernel's stack walk goes astray
// and may produce invalid addresses.
template<class Address>
void append_code(std::vector<uint64_t>& addresses, std::span<const Address> walked)
{
    for (const uint64_t address : walked) {
        if (!address || address >= user_addresses_end)
            return;
        addresses.push_back(address);
    }
}

// Returns the callers in a copy of the stack. If the copy is cut short, appends the outer callers found by frame
// pointers, provided that these include the last caller in the copy.
std::vector<uint64_t> joined_callers(const CopiedStacks::Stack& copy, std::span<const uint64_t> by_frame_pointers)
{
    std::vector<uint64_t> all = copy.callers;
    const auto last = std::ranges::find(by_frame_pointers, all.back());
    if (copy.cut && last != by_frame_pointers.end())
        all.insert(all.end(), std::next(last), by_frame_pointers.end());
    return all;
}

// Splits a line such as "step+0x1f (train)", "libtorch.so+0x1234" or "0x7f00".
CodeFrame native_part(const std::string& line)
{
    CodeFrame part{.language = "native", .function = {}, .file = {}, .line = {}};
    const size_t plus = line.rfind("+0x"), file = line.rfind(" (");
    if (plus == std::string::npos)
        return part;
    if (file == std::string::npos || file < plus) {
        part.file = line.substr(0, plus);
    } else {
        part.function = line.substr(0, plus);
        part.file = line.substr(file + 2, line.size() - file - 3);
    }
    return part;
}

CodeFrame python_part(const PythonFrame& frame)
{
    return {.language = "python", .function = frame.function, .file = frame.file, .line = frame.line};
}

void add(Frames& frames, std::string line, CodeFrame part)
{
    frames.lines.push_back(std::move(line));
    frames.parts.push_back(std::move(part));
}

void add_remark(Frames& frames, std::string line)
{
    add(frames, std::move(line), CodeFrame());
}

} // namespace

bool UserStacks::can_follow_python()
{
    return libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, nullptr) == 1;
}

void UserStacks::follow_python(const BpfObject& bpf, uint32_t stacks)
{
    if (!bpf.has("follow_python"))
        return;
    bpf.set("follow_python", stacks != 0);
    bpf.set<uint32_t>("python_stacks_mask", stacks ? stacks - 1 : 0);
    for (const char* const name :
         {"pythons", "python_stacks", "python_codes", "python_walks", "python_walks_of_threads"})
        if (bpf_map* const map = bpf.map(name); map && stacks == 0)
            bpf_map__set_autocreate(map, false);
    if (stacks)
        bpf.resize("python_stacks", stacks);
}

void UserStacks::follow_windows(const BpfObject& bpf, uint32_t stacks)
{
    if (!bpf.has("window_stacks_mask"))
        return;
    bpf.set<uint32_t>("window_stacks_mask", stacks ? stacks - 1 : 0);
    bpf.resize("window_stacks", std::max(stacks, 1U));
}

UserStacks::Kernel UserStacks::kernel_of(const BpfObject& bpf, const char* stacks)
{
    Kernel kernel{.stacks = bpf.fd(stacks), .window_stacks = bpf.fd("window_stacks")};
    if (const bool* const follows = bpf.find<bool>("follow_python"); follows && *follows) {
        kernel.pythons_known = bpf.find<uint32_t>("pythons_known");
        kernel.python = {bpf.fd("pythons"), bpf.fd("python_stacks"), bpf.fd("python_codes")};
    }
    return kernel;
}

UserStacks::UserStacks(const Kernel& kernel, StackView view, WaitBudget* waits)
    : kernel_(kernel), view_(std::move(view)), names_(waits), copies_(waits)
{
    if (kernel.python)
        python_.emplace(*kernel.python, *kernel.pythons_known, waits);
}

void UserStacks::begin(std::span<const pid_t> targets)
{
    if (python_)
        for (const pid_t pid : targets)
            python_->track(pid, true);
}

void UserStacks::track(const std::vector<pid_t>& running, bool wait)
{
    using Clock = std::chrono::steady_clock;
    const Clock::time_point until = Clock::now() + waits_at_begin;
    if (python_)
        for (const pid_t pid : running)
            python_->track(pid, wait && Clock::now() < until);
}

bool UserStacks::learn(uint32_t type, std::span<const uint8_t> record)
{
    if (type == RECORD_STACK_COPY)
        copies_.learn(record);
    else if (type == RECORD_PYTHON_CODE && python_)
        python_->learn(record);
    else if (type == RECORD_PROCESS && python_ && record.size() >= sizeof(process_record))
        python_->track(static_cast<pid_t>(reinterpret_cast<const process_record*>(record.data())->image.pid));
    return type == RECORD_STACK_COPY || type == RECORD_PYTHON_CODE;
}

void UserStacks::tick()
{
    names_.tick();
    copies_.tick();
    if (python_)
        python_->tick();
}

std::set<int32_t> UserStacks::keep(const std::set<int32_t>& stacks)
{
    std::set<int32_t> native = python_ ? python_->keep(stacks) : std::set<int32_t>();
    std::set<int32_t> kept = native;
    kept.insert(stacks.begin(), stacks.end());
    copies_.keep(kept);
    free_windows([&](int32_t stack) { return kept.contains(stack); });
    return native;
}

// Frees the table entries of stacks for which kept() is false, so that the BPF programs can reuse the entries.
void UserStacks::free_windows(const std::function<bool(int32_t stack)>& kept) const
{
    window_stack found{};
    for (int32_t place = 0; bpf_map_lookup_elem(kernel_.window_stacks, &place, &found) == 0; place++)
        if (found.hash && !kept(place | STACK_OF_WINDOW)) {
            found = {};
            bpf_map_update_elem(kernel_.window_stacks, &place, &found, BPF_ANY);
        }
}

void UserStacks::on_exit(pid_t pid)
{
    if (python_)
        python_->on_exit(pid);
}

void UserStacks::forget(const ImageId& image)
{
    names_.forget(image);
    copies_.forget(image);
    std::erase_if(expected_, [&](const auto& one) { return one.first == image; });
    if (python_)
        python_->forget(image);
}

// Returns the caller, followed by the return addresses found by frame pointers. Skips the first entry of the kernel's
// trace, because it is the probed function or the caller.
std::vector<uint64_t> UserStacks::by_frame_pointers(int32_t stack, uint64_t caller) const
{
    std::vector<uint64_t> addresses;
    if (kernel_.starts_in_probe)
        addresses.push_back(caller);
    if (stack >= 0 && stack & STACK_OF_WINDOW) {
        window_stack found{};
        const int32_t place = stack & ~STACK_OF_WINDOW;
        if (bpf_map_lookup_elem(kernel_.window_stacks, &place, &found) != 0)
            return addresses;
        if (!kernel_.starts_in_probe)
            addresses.push_back(found.caller);
        append_code<__u64>(addresses, std::span(found.address).first(std::min<uint64_t>(found.depth, WINDOW_FRAMES)));
        return addresses;
    }
    const bool without_first = stack & STACK_WITHOUT_FIRST || !kernel_.starts_in_probe;
    if (stack >= 0) {
        const std::vector<uint64_t> walked = stack_trace(kernel_.stacks, stack & ~STACK_WITHOUT_FIRST);
        append_code<uint64_t>(addresses, std::span(walked).subspan(without_first || walked.empty() ? 0 : 1));
    }
    return addresses;
}

// Replaces each native frame of the interpreter loop by the Python frames that it runs. These frames end before the
// next frame with from_c set. That frame belongs to an outer loop: it called the native code that started this loop. If
// the copy of the stack ends before all Python frames are shown, the other Python frames are appended.
Frames UserStacks::with_python(const ImageId& image, const PythonStacks::Stack& stack, std::span<const uint64_t> native)
{
    Frames frames;
    size_t next = 0;
    const auto python = [&](bool all) {
        for (bool first = true; next < stack.frames.size(); first = false) {
            const PythonFrame& frame = stack.frames[next];
            if (!all && !first && frame.from_c)
                return;
            if (next == stack.inner && stack.left_out)
                add_remark(frames, fmt::format("[{} frames]", stack.left_out));
            add(frames, frame.text(), python_part(frame));
            next++;
        }
    };
    const std::vector<std::string> lines = names_.frames(image, native);
    for (size_t i = 0; i < lines.size(); i++) {
        const auto kind = python_->native(image, native[i]);
        if (kind == PythonStacks::Native::other || view_.native)
            add(frames, lines[i], native_part(lines[i]));
        if (kind == PythonStacks::Native::loop)
            python(false);
        if (next == stack.frames.size() && !view_.native && kind != PythonStacks::Native::other && next)
            break; // the remaining native frames started the interpreter
    }
    python(true);
    if (!stack.remark.empty())
        add_remark(frames, stack.remark);
    return frames;
}

// Keeps the innermost frames, and appends the number of dropped frames.
void UserStacks::cut(Frames& frames) const
{
    if (!view_.depth || frames.lines.size() <= view_.depth)
        return;
    const size_t more = frames.lines.size() - view_.depth;
    frames.lines.resize(view_.depth);
    frames.lines.push_back(fmt::format("[{} more]", more));
    if (!frames.parts.empty())
        frames.parts.resize(view_.depth);
}

void UserStacks::expect(const ImageId& image, int32_t stack)
{
    if (stack >= 0 && expected_.emplace(image, stack).second)
        frames(image, stack, 0);
}

Frames UserStacks::frames(const ImageId& image, std::span<const uint64_t> addresses)
{
    Frames frames(names_.frames(image, addresses));
    cut(frames);
    return frames;
}

Frames UserStacks::frames(const ImageId& image, int32_t stack, uint64_t caller)
{
    const auto python = python_ ? python_->find(stack) : std::nullopt;
    const int32_t walked = !PythonStacks::is_python(stack) ? stack : python ? python->native : -1;
    std::vector<uint64_t> native = by_frame_pointers(walked, caller);
    // If the thread runs Python, the copy is stored under the id of the Python stack, else under the id of the native
    // stack.
    if (const CopiedStacks::Stack* const copy = copies_.find(walked >= 0 ? walked : stack);
        copy && (!kernel_.starts_in_probe || copy->callers.front() == caller))
        native = joined_callers(*copy, native);
    if (!python)
        return frames(image, native);
    Frames frames = with_python(image, *python, native);
    cut(frames);
    return frames;
}

bool UserStacks::is_of_program(const PythonFrame& frame) const
{
    return frame.is_of_program() && std::ranges::none_of(view_.skip, [&](const std::string& glob) {
               return fnmatch(glob.c_str(), frame.file.c_str(), 0) == 0;
           });
}

CodePlace UserStacks::place(const ImageId& image, int32_t stack, uint64_t caller)
{
    if (const auto python = python_ ? python_->find(stack) : std::nullopt; python && !python->frames.empty()) {
        const auto own =
            std::ranges::find_if(python->frames, [this](const PythonFrame& frame) { return is_of_program(frame); });
        const PythonFrame& frame = own == python->frames.end() ? python->frames.front() : *own;
        return {.function = frame.function, .file = frame.file, .line = frame.line};
    }
    const Frames all = frames(image, stack, caller);
    const std::string calling = calling_function(all.lines);
    const size_t file = calling.rfind(" (");
    if (file == std::string::npos)
        return {};
    return {
        .function = calling.substr(0, file), .file = calling.substr(file + 2, calling.size() - file - 3), .line = {}};
}

} // namespace gpusnoop
