// SPDX-License-Identifier: Apache-2.0
#include "names/python_stacks.hpp"

#include "base/bpf_map.hpp"
#include "base/error.hpp"
#include "code/python_interpreter.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace gpusnoop {

std::string PythonFrame::text() const
{
    const std::string_view name = function.empty() ? std::string_view("?") : function;
    if (file.empty())
        return fmt::format("{} (Python)", name);
    return line ? fmt::format("{} ({}:{})", name, code_file_name(file), *line)
                : fmt::format("{} ({})", name, code_file_name(file));
}

bool PythonFrame::is_of_program() const
{
    for (const std::string_view folder : {"/site-packages/", "/dist-packages/", "/lib/python3."})
        if (file.find(folder) != std::string::npos)
            return false;
    return !file.empty() && !file.starts_with('<');
}

PythonStacks::PythonStacks(const Fds& fds, volatile uint32_t& known, WaitBudget* waits)
    : fds_(fds), known_(known), reader_({.sandbox = process_reading_sandbox(python_search_memory_bytes),
                                         .serve = serve_python_search,
                                         .apply = [this](const Message& message) { return apply(message); },
                                         .restarted =
                                             [this] {
                                                 for (auto& [pid, process] : processes_)
                                                     process.asked = process.code.end != 0;
                                             },
                                         .consequence = "its Python frames are missing"},
                                        waits)
{}

void PythonStacks::track(pid_t pid, bool wait)
{
    const uint64_t start_ns = start_time_ns(pid);
    Process& process = processes_[pid];
    if (process.start_ns == start_ns && process.asked)
        return;
    process = {.start_ns = start_ns};
    const std::string question = message_of(PythonQuestion{.pid = pid});
    process.asked = wait ? reader_.ask(pid, question) : reader_.post(pid, question);
}

bool PythonStacks::apply(const Message& message)
{
    const auto answer = read_message<PythonAnswer>(message.bytes);
    if (!answer || (!answer->layout.empty() && answer->layout.size() != sizeof(python_layout)))
        return false;
    const auto process = processes_.find(answer->pid);
    if (process == processes_.end())
        return true; // the process has exited
    if (!answer->refused.empty())
        warn(fmt::format("cannot follow the Python stacks of process {}: {}", answer->pid, answer->refused));
    if (answer->layout.empty())
        return true;
    python_layout layout{};
    memcpy(&layout, answer->layout.data(), sizeof(layout));
    if (layout.start_ns != process->second.start_ns)
        return true;
    process->second.code = {answer->code_start, answer->code_end};
    process->second.loop = {answer->loop_start, answer->loop_end};
    const auto pid = static_cast<uint32_t>(answer->pid);
    if (bpf_map_update_elem(fds_.pythons, &pid, &layout, BPF_ANY) == 0)
        known_ = 1;
    return true;
}

void PythonStacks::learn(std::span<const uint8_t> record)
{
    auto code = read_python_code(record);
    if (!code)
        return;
    python_code head{};
    memcpy(&head, record.data(), sizeof(head));
    codes_.insert_or_assign({head.image, head.code, head.check}, std::move(*code));
}

void PythonStacks::on_exit(pid_t pid)
{
    if (processes_.erase(pid) == 0)
        return;
    const auto key = static_cast<uint32_t>(pid);
    bpf_map_delete_elem(fds_.pythons, &key);
}

void PythonStacks::free_entries(const std::function<bool(int32_t, const python_stack&)>& kept)
{
    python_stack stack{};
    for (uint32_t place = 0; bpf_map_lookup_elem(fds_.stacks, &place, &stack) == 0; place++)
        if (stack.hash && !kept(static_cast<int32_t>(place) | STACK_OF_PYTHON, stack)) {
            stack = {};
            bpf_map_update_elem(fds_.stacks, &place, &stack, BPF_ANY);
        }
}

// Frees the table entries for stacks of a process that has exited or called exec.
void PythonStacks::forget(const ImageId& image)
{
    const auto first = codes_.lower_bound({image, 0, 0}), last = codes_.upper_bound({image, UINT64_MAX, UINT64_MAX});
    if (first == last)
        return;
    codes_.erase(first, last);
    erase_images(fds_.codes, [&](const ::image& one) { return ImageId(one) == image; });
    free_entries([&](int32_t, const python_stack& stack) { return ImageId(stack.image) != image; });
}

std::set<int32_t> PythonStacks::keep(const std::set<int32_t>& stacks)
{
    std::set<int32_t> native;
    free_entries([&](int32_t number, const python_stack& stack) {
        const bool kept = stacks.contains(number);
        if (kept && stack.native >= 0)
            native.insert(stack.native);
        return kept;
    });
    return native;
}

PythonFrame PythonStacks::frame(const python_stack& stack, const python_frame& frame) const
{
    const auto code = codes_.find({stack.image, frame.code & ~PYTHON_FROM_C, frame.check});
    if (code == codes_.end())
        return {.function = "?", .file = {}, .line = {}};
    return {.function = code->second.function,
            .file = code->second.file,
            .line = line_of(code->second, stack, frame),
            .from_c = (frame.code & PYTHON_FROM_C) != 0};
}

std::optional<PythonStacks::Stack> PythonStacks::find(int32_t stack) const
{
    const auto place = static_cast<uint32_t>(stack & ~STACK_OF_PYTHON);
    python_stack kept{};
    if (!is_python(stack) || bpf_map_lookup_elem(fds_.stacks, &place, &kept) != 0 || !kept.hash)
        return std::nullopt;
    Stack result;
    result.native = kept.native;
    const size_t depth = kept.depth, shown = std::min<size_t>(depth, PYTHON_FRAMES);
    result.left_out = depth - shown;
    result.inner = std::min<size_t>(shown, PYTHON_INNER);
    for (size_t i = 0; i < shown; i++) {
        // The table entry holds the PYTHON_INNER innermost frames, followed by a ring buffer of the PYTHON_OUTER
        // outermost frames.
        const size_t number = i < result.inner ? i : i + result.left_out;
        const size_t at = number < PYTHON_INNER ? number : PYTHON_INNER + (number - PYTHON_INNER) % PYTHON_OUTER;
        result.frames.push_back(frame(kept, kept.frame[at]));
    }
    if (kept.outcome == PYTHON_NO_THREAD) {
        const std::string_view name(kept.comm, strnlen(kept.comm, sizeof(kept.comm)));
        result.remark = fmt::format("[thread {} runs no Python]", name);
    } else if (kept.outcome == PYTHON_UNREADABLE) {
        result.remark = "[Python frames could not be read]";
    } else if (kept.too_deep) {
        result.remark = fmt::format("[more than {} frames]", PYTHON_DEPTH_MAX);
    }
    return result;
}

PythonStacks::Native PythonStacks::native(const ImageId& image, uint64_t address) const
{
    const auto process = processes_.find(static_cast<pid_t>(image.pid));
    if (process == processes_.end())
        return Native::other;
    return process->second.loop.has(address)   ? Native::loop
           : process->second.code.has(address) ? Native::interpreter
                                               : Native::other;
}

} // namespace gpusnoop
