// SPDX-License-Identifier: Apache-2.0
#include "code/copy_search.hpp"

#include "base/error.hpp"
#include "bpf/shared/stack.h"
#include "code/unwinder.hpp"

#include <cstring>
#include <fmt/format.h>
#include <new>

namespace gpusnoop {

void CopySearch::serve(Helper::Task& task)
{
    while (const auto message = task.connection.receive()) {
        const auto question = read_message<CopyQuestion>(message->bytes);
        if (!question)
            return;
        task.set_status(fmt::format("the stacks of process {}", question->pid));
        if (!task.connection.send(message_of(answer(*question))))
            return;
    }
}

CopyAnswer CopySearch::answer(const CopyQuestion& question)
{
    CopyAnswer answer{.stack = question.stack, .again = (question.at & COPIED_AGAIN) != 0};
    const uint32_t at = question.at & ~uint32_t{COPIED_AGAIN};
    if (!question.pid || question.bytes.size() < sizeof(uint64_t))
        return answer;
    if (modules_.full())
        modules_.forget();
    try {
        ProcessImage image(static_cast<pid_t>(question.pid), modules_);
        const uint64_t top = question.thread.sp;
        image.only_copied(top, question.bytes);
        for (const InsideQuestion::Replaced& replaced : question.thread.replaced)
            image.put_return(replaced.slot, replaced.address);
        FrameRegisters registers = registers_of(question.thread);
        if (at == COPIED_AT_ENTRY)
            leave_function(image, registers);
        const std::vector<StackFrame> frames =
            unwind(image, registers, at == COPIED_ANYWHERE ? FirstFrame::runs : FirstFrame::calls);
        for (const StackFrame& frame : frames)
            if (answer.callers.size() < CopyAnswer::callers_max)
                answer.callers.push_back(frame.address);
        answer.cut = image.asked_beyond();
    } catch (const std::bad_alloc&) { // the next process has room again
        modules_.forget();
    } catch (const Error&) {}
    return answer;
}

int32_t FoundStacks::number_of(const std::vector<uint64_t>& addresses)
{
    if (addresses.empty())
        return -1;
    if (const auto known = numbers_.find(addresses); known != numbers_.end())
        return known->second;
    if (stacks_.size() == most)
        return -1;
    const auto added = numbers_.emplace(addresses, first + static_cast<int32_t>(stacks_.size())).first;
    stacks_.emplace_back(added->first);
    return added->second;
}

std::span<const uint64_t> FoundStacks::of(int32_t number) const
{
    const auto at = static_cast<size_t>(number - first);
    return is(number) && at < stacks_.size() ? stacks_[at] : std::span<const uint64_t>();
}

} // namespace gpusnoop
