// SPDX-License-Identifier: Apache-2.0
#include "tools/nvioctl/monitors.hpp"

#include "gpu/driver_names.hpp"
#include "gpu/gpu_files.hpp"
#include "proc/process.hpp"
#include "proc/threads.hpp"
#include "reader/message.hpp"
#include "reader/reader.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace gpusnoop {
namespace {

constexpr size_t max_results = 1 << 16;

// True for calls that only processes with GPU work make. Every CUDA process opens nvidia-uvm, and NVML never does.
bool is_work(const call_key& key)
{
    if (key.driver.node == NODE_NVIDIA_UVM || key.driver.node == NODE_KFD || key.driver.node == NODE_AMDGPU)
        return true;
    const auto number = object_class(key);
    return number && (submits_work(class_kind(*number)) || class_kind(*number) == ClassKind::memory);
}

// True if the process has mapped libraries or opened device files that only GPU work needs. This also detects work that
// was done before tracing began.
bool has_signs_of_work(pid_t pid)
{
    constexpr std::array<std::string_view, 4> libraries{"/libcuda.so", "/libnvidia-glcore.so", "/libnvidia-eglcore.so",
                                                        "/libnvidia-glvkspirv.so"};
    for (const Mapping& mapping : mappings(pid))
        if (std::ranges::any_of(libraries, [&](auto name) { return mapping.path.find(name) != std::string::npos; }))
            return true;
    const DriverNodes nodes = driver_nodes();
    std::error_code error;
    const std::string files = fmt::format("/proc/{}/fd", running_thread(pid).value_or(pid));
    for (const auto& entry : std::filesystem::directory_iterator(files, error)) {
        struct stat status {};
        if (stat(entry.path().c_str(), &status) || !S_ISCHR(status.st_mode))
            continue;
        const auto node = nodes.find(device_number(major(status.st_rdev), minor(status.st_rdev)));
        if (node != nodes.end() && (node->second == NODE_NVIDIA_UVM || node->second == NODE_NVIDIA_MODESET))
            return true;
    }
    return false;
}

struct MonitorAnswer {
    ImageId image{};
    bool works = false;
};

void fields(auto& each, same_as_const<MonitorAnswer> auto& a)
{
    each(a.image.pid, a.image.serial, a.works);
}

// Runs in the helper process. The request is a MonitorAnswer without its result, which is filled in here.
void serve(Helper::Task& task)
{
    answer_each<MonitorAnswer>(task, [](MonitorAnswer& answer) -> const MonitorAnswer& {
        answer.works = has_signs_of_work(static_cast<pid_t>(answer.image.pid));
        return answer;
    });
}

} // namespace

Monitors::Monitors()
    : reader_({.sandbox = process_reading_sandbox(64 << 20),
               .serve = serve,
               .apply = [this](const Message& message) { return apply(message); },
               .consequence = "it is not treated as a monitor"})
{}

bool Monitors::apply(const Message& message)
{
    const auto answer = read_message<MonitorAnswer>(message.bytes);
    if (!answer)
        return false;
    if (results_.size() < max_results)
        results_[answer->image] = !answer->works;
    return true;
}

void Monitors::note_call(const call_key& key)
{
    if (is_work(key))
        workers_.insert(ImageId(key.image));
}

bool Monitors::only_polls(const ImageId& image)
{
    if (workers_.contains(image))
        return false;
    if (!results_.contains(image))
        reader_.ask(static_cast<pid_t>(image.pid), message_of(MonitorAnswer{.image = image}));
    const auto found = results_.find(image);
    return found != results_.end() && found->second;
}

void Monitors::forget(const std::set<ImageId>& images)
{
    for (const ImageId& image : images) {
        workers_.erase(image);
        results_.erase(image);
    }
}

} // namespace gpusnoop
