// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/allotments.hpp"

#include "base/text.hpp"
#include "proc/process.hpp"
#include "reader/message.hpp"
#include "reader/reader.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace gpusnoop {
namespace {

constexpr uint64_t memory_bytes = 16 << 20;
constexpr size_t max_value_length = 4096;
constexpr size_t max_names = 64;

struct Answer {
    uint32_t pid = 0;
    uint64_t start_ns = 0;
    Allotment allotment{};
};

void fields(auto& each, same_as_const<Answer> auto& a)
{
    each(a.pid, a.start_ns, a.allotment.visible_devices, a.allotment.slurm_gpus);
}

void serve(Helper::Task& task)
{
    answer_each<Answer>(task, [&](Answer& answer) -> const Answer& {
        task.set_status(fmt::format("the environment of process {}", answer.pid));
        answer.allotment = allotment_in(environment(static_cast<pid_t>(answer.pid)));
        return answer;
    });
}

// Parses a range such as "0-3"; false if the text is not a range.
bool add_range(std::string_view name, std::vector<std::string>& to)
{
    const auto first = consume_number<unsigned>(name);
    if (!first || !name.starts_with('-'))
        return false;
    const auto last = parse_number<unsigned>(name.substr(1));
    if (!last || *last < *first)
        return false;
    for (uint64_t i = *first; i <= *last && to.size() < max_names; i++)
        to.push_back(std::to_string(i));
    return true;
}

} // namespace

Allotment allotment_in(std::string_view environment)
{
    Allotment allotment;
    std::string step;
    const std::pair<std::string_view, std::string&> wanted[] = {{"NVIDIA_VISIBLE_DEVICES=", allotment.visible_devices},
                                                                {"SLURM_JOB_GPUS=", allotment.slurm_gpus},
                                                                {"SLURM_STEP_GPUS=", step}};
    for (std::string_view rest = environment; !rest.empty();) {
        const std::string_view variable = next_part(rest, '\0');
        for (const auto& [name, value] : wanted)
            if (value.empty() && variable.starts_with(name) && variable.size() - name.size() <= max_value_length)
                value = variable.substr(name.size());
    }
    if (allotment.slurm_gpus.empty())
        allotment.slurm_gpus = step;
    return allotment;
}

std::vector<std::string> devices_in(std::string_view list)
{
    std::vector<std::string> names;
    for (std::string_view rest = list; !rest.empty() && names.size() < max_names;) {
        const std::string_view name = next_part(rest, ',');
        if (!name.empty() && name != "all" && name != "none" && name != "void" && !add_range(name, names))
            names.emplace_back(name);
    }
    return names;
}

Allotments::Allotments()
    : reader_({.sandbox = process_reading_sandbox(memory_bytes),
               .serve = serve,
               .apply = [this](const Message& message) { return apply(message); },
               .consequence = "the GPUs in its environment are not known"})
{}

// The initial environment of a process does not change, so it is requested once. ask() waits a short time for the
// answer, so the GPUs are usually known when this function returns.
const Allotment& Allotments::of(uint32_t pid, uint64_t start_ns)
{
    const auto [at, is_new] = known_.try_emplace({pid, start_ns});
    at->second.selected = true;
    if (is_new)
        reader_.ask(static_cast<pid_t>(pid), message_of(Answer{pid, start_ns}));
    return at->second.allotment;
}

void Allotments::sweep()
{
    reader_.poll();
    for (auto item = known_.begin(); item != known_.end();)
        item = std::exchange(item->second.selected, false) ? std::next(item) : known_.erase(item);
}

bool Allotments::apply(const Message& message)
{
    auto answer = read_message<Answer>(message.bytes);
    if (!answer)
        return false;
    if (const auto known = known_.find({answer->pid, answer->start_ns}); known != known_.end())
        known->second.allotment = std::move(answer->allotment);
    return true;
}

} // namespace gpusnoop
