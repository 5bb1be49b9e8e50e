// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_figures.hpp"

#include "base/error.hpp"
#include "base/withdrawals.hpp"
#include "gpu/nvml_service.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <tuple>
#include <utility>

namespace gpusnoop {
namespace {

// Returns the entries of `figures` for these processes, on one device or on all. Returns each entry once, even if
// `images` has several images with the same pid because the process has called exec.
template<class Figure>
std::vector<Figure> of_processes(const std::multimap<uint32_t, Figure>& figures, const std::set<ImageId>& images,
                                 std::optional<unsigned> device = {})
{
    std::set<uint32_t> pids;
    for (const ImageId& image : images)
        pids.insert(image.pid);
    std::vector<Figure> found;
    for (uint32_t pid : pids)
        for (auto [item, end] = figures.equal_range(pid); item != end; ++item)
            if (!device || item->second.device == *device)
                found.push_back(item->second);
    return found;
}

template<class Figure>
std::multimap<uint32_t, Figure> by_pid(const std::vector<Figure>& figures)
{
    std::multimap<uint32_t, Figure> map;
    for (const Figure& figure : figures)
        map.emplace(figure.pid, figure);
    return map;
}

constexpr std::string_view no_answer = "NVML does not answer: its figures are missing until it does";
constexpr std::string_view has_died = "the NVML helper has died; NVML figures are missing until a new helper answers";
constexpr std::string_view keeps_dying =
    "the NVML helper has died 3 times in a row: it is now restarted once a minute, and NVML figures are missing in "
    "between; check dmesg for the cause (out of memory, a crash of the library), or disable NVML with --nvml off";
constexpr unsigned consecutive_deaths = 3;
constexpr std::chrono::seconds hang_timeout(30);          // eight GPUs without persistence mode wake up in 10 s
constexpr std::chrono::milliseconds start_patience(1000); // one GPU without persistence mode wakes up in about 1 s
constexpr std::chrono::milliseconds answer_patience(200);

} // namespace

NvmlFigures::NvmlFigures(const std::string& library, const NvmlQuestions& questions)
    : parts_(nvml_answer_bytes_max), questions_(questions)
{
    if (library == "off") {
        why_ = "NVML is disabled (--nvml off)";
        return;
    }
    if (!library.empty())
        places_ = {.library = library, .folders = {}, .root = {}, .is_named = true};
    now_ns_ = clock_ns(CLOCK_MONOTONIC);
    start();
    const auto first = ask(start_patience);
    if (!first) { // the reply may arrive later
        is_late_ = !lost_;
        set_warning(lost_ ? has_died : no_answer);
        return;
    }
    started_ = was_available_ = true;
    if (first->why.empty())
        return;
    reader_.reset();
    why_ = first->why;
    if (!library.empty())
        throw Error(why_, "leave out --nvml, or name the driver's libnvidia-ml.so.1");
    verbose(why_);
}

// Starts the helper without a sandbox, because the library needs the tool's privileges to open devices and call
// drivers.
void NvmlFigures::start()
{
    reader_.emplace(Reader::Service{
        .serve = [this](Helper::Task& task) { serve_nvml(places_, questions_.devices, task.connection); },
        .apply_part =
            [this](const Reader::Part& part) {
                const Reader::Reply reply = parts_.add(part.message.bytes);
                if (reply == Reader::Reply::complete)
                    answers_ = answers_from(parts_.extract());
                return reply == Reader::Reply::complete && !answers_ ? Reader::Reply::invalid : reply;
            },
        .lost =
            [this](const Reader::Loss& loss) {
                on_loss(loss);
                return true;
            },
        .clock = [this] { return Reader::Clock::time_point(std::chrono::nanoseconds(now_ns_)); },
        .hang_timeout = hang_timeout,
        .blames = false});
}

void NvmlFigures::on_loss(const Reader::Loss& loss)
{
    parts_.extract();
    answers_.reset();
    lost_ = true;
    started_ = is_late_ = false;
    if (loss.died)
        set_warning(reader_->consecutive_deaths() >= consecutive_deaths ? keeps_dying : has_died);
}

void NvmlFigures::refresh(uint64_t now_ns)
{
    now_ns_ = now_ns;
    // Accepts calls that are early by up to 5% of the interval, because the caller's timer may fire a little early.
    if (!reader_ || now_ns + questions_.interval_ns / 20 < due_ns_)
        return;
    due_ns_ = std::max(due_ns_, now_ns) + questions_.interval_ns;
    lost_ = false;
    std::optional<NvmlAnswers> answers = ask_for_figures();
    if (!answers && reader_ && lost_)
        answers = ask_for_figures();
    if (!reader_)
        return;
    is_late_ = !answers && reader_->is_pending();
    if (answers && reader_->consecutive_deaths() < consecutive_deaths)
        set_warning({});
    else if (!answers && warning_.empty())
        set_warning(no_answer);
    apply(std::move(answers).value_or(NvmlAnswers()));
}

// Returns the overdue reply to the last request if it has arrived. Otherwise, sends a request unless one is pending,
// and waits for the reply.
std::optional<NvmlAnswers> NvmlFigures::ask(std::chrono::milliseconds patience)
{
    reader_->poll();
    if (!answers_) {
        if (!reader_->is_pending())
            reader_->post(0, "?");
        reader_->wait_until(Reader::Clock::now() + patience);
    }
    return std::exchange(answers_, std::nullopt);
}

std::optional<NvmlAnswers> NvmlFigures::ask_for_figures()
{
    auto answers = ask(is_late_ ? std::chrono::milliseconds(0) : answer_patience);
    if (!answers || std::exchange(started_, true))
        return answers;
    // The first reply of a helper reports only whether NVML is available.
    if (answers->why.empty()) {
        was_available_ = true;
        return ask(answer_patience);
    }
    if (!was_available_) {
        why_ = answers->why;
        set_warning({});
        reader_.reset();
    } // else keep the reader: this helper found no library and exits, but its replacement may find one again
    return std::nullopt;
}

void NvmlFigures::set_warning(std::string_view message)
{
    if (message == warning_)
        return;
    if (!warning_.empty())
        withdraw(warning_);
    if (!message.empty())
        warn(message);
    warning_ = message;
}

void NvmlFigures::apply(NvmlAnswers answers)
{
    processes_ = by_pid(answers.processes);
    use_ = by_pid(answers.use);
    states_ = std::move(answers.states);
    for (const NvmlFailure& failure : answers.failures)
        if (warned_devices_.insert(failure.device).second)
            warn(fmt::format("NVML does not report the processes of device {}: {}", failure.device, failure.why));
}

bool NvmlFigures::is_divided(unsigned device, uint32_t gpu_instance) const
{
    const auto state = std::ranges::find(states_, device, &NvmlDeviceState::index);
    return state != states_.end() && std::ranges::any_of(state->instances, [&](const NvmlInstance& one) {
               return one.gpu_instance == gpu_instance && one.divided();
           });
}

std::optional<uint64_t> NvmlFigures::memory_of(const std::set<ImageId>& images, std::optional<unsigned> device) const
{
    std::optional<uint64_t> sum;
    for (const NvmlProcess& process : of_processes(processes_, images, device)) {
        if (!process.bytes)
            return std::nullopt;
        sum = sum.value_or(0) + *process.bytes;
    }
    return sum;
}

std::optional<double> NvmlFigures::sm_percent_of(const std::set<ImageId>& images, std::optional<unsigned> device) const
{
    return use_of(images, &NvmlUse::sm_percent, device);
}

std::optional<double> NvmlFigures::use_of(const std::set<ImageId>& images, std::optional<double> NvmlUse::*figure,
                                          std::optional<unsigned> device) const
{
    std::optional<double> sum;
    for (const NvmlUse& use : of_processes(use_, images, device))
        if (use.*figure)
            sum = sum.value_or(0) + *(use.*figure);
    return sum;
}

std::string_view NvmlFigures::source_of(unsigned device) const
{
    const auto state = std::ranges::find(states_, device, &NvmlDeviceState::index);
    return state != states_.end() && state->vendor == GpuVendor::amd ? "kfd" : "nvml";
}

std::optional<std::string> NvmlFigures::instance_of(const std::set<ImageId>& images) const
{
    std::set<std::tuple<unsigned, std::optional<uint32_t>, std::optional<uint32_t>>> instances;
    for (const NvmlProcess& process : of_processes(processes_, images))
        instances.emplace(process.device, process.gpu_instance, process.compute_instance);
    if (instances.size() != 1)
        return std::nullopt;
    const auto& [device, gpu, compute] = *instances.begin();
    if (!gpu)
        return std::nullopt;
    return compute ? fmt::format("gi {} ci {}", *gpu, *compute) : fmt::format("gi {}", *gpu);
}

} // namespace gpusnoop
