// SPDX-License-Identifier: Apache-2.0
#include "who/command_lines.hpp"

#include "proc/process.hpp"
#include "reader/message.hpp"
#include "reader/reader.hpp"

#include <fmt/format.h>

namespace gpusnoop {
namespace {

constexpr uint64_t max_command_memory = 16 << 20;
constexpr std::chrono::seconds refresh_interval(5);

// Message to and from the helper. In a request, only the image is set.
struct CommandLine {
    ImageId image{};
    std::string text{};
};

void fields(auto& each, same_as_const<CommandLine> auto& c)
{
    each(c.image.pid, c.image.serial, c.text);
}

void serve_command_lines(Helper::Task& task)
{
    answer_each<CommandLine>(task, [&](CommandLine& answer) -> const CommandLine& {
        task.set_status(fmt::format("the command line of process {}", answer.image.pid));
        answer.text = command_line(static_cast<pid_t>(answer.image.pid));
        return answer;
    });
}

} // namespace

CommandLines::CommandLines(WaitBudget* waits)
    : reader_({.sandbox = process_reading_sandbox(max_command_memory),
               .serve = serve_command_lines,
               .apply = [this](const Message& message) { return apply(message); },
               .consequence = "its command line is not shown"},
              waits)
{}

// At the first call for a process, waits for the helper's reply, so that the command line is in the table even if only
// one table is printed.
const std::string& CommandLines::of(const ImageId& image)
{
    reader_.poll();
    const auto now = Clock::now();
    const auto [at, is_new] = known_.try_emplace(image);
    if (!is_new && now - at->second.asked < refresh_interval)
        return at->second.text;
    at->second.asked = now;
    const std::string question = message_of(CommandLine{image});
    if (is_new)
        reader_.ask(static_cast<pid_t>(image.pid), question);
    else
        reader_.post(static_cast<pid_t>(image.pid), question);
    return at->second.text;
}

const std::string& CommandLines::last_known(const ImageId& image) const
{
    static const std::string unknown;
    const auto known = known_.find(image);
    return known == known_.end() ? unknown : known->second.text;
}

bool CommandLines::apply(const Message& message)
{
    auto answer = read_message<CommandLine>(message.bytes);
    if (!answer)
        return false;
    const auto known = known_.find(answer->image);
    if (known != known_.end() && !answer->text.empty())
        known->second.text = std::move(answer->text);
    return true;
}

} // namespace gpusnoop
