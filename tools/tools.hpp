// SPDX-License-Identifier: Apache-2.0
// The list of all tools, which are one program with several names.
#pragma once

#include <memory>
#include <span>
#include <string_view>

namespace gpusnoop {

class Tool;

std::unique_ptr<Tool> make_cudatop();
std::unique_ptr<Tool> make_cudalaunch();
std::unique_ptr<Tool> make_cudamemcpy();
std::unique_ptr<Tool> make_cudasync();
std::unique_ptr<Tool> make_gpualloc();
std::unique_ptr<Tool> make_cudagraph();
std::unique_ptr<Tool> make_nvioctl();
std::unique_ptr<Tool> make_cudagap();
std::unique_ptr<Tool> make_ncclwait();
std::unique_ptr<Tool> make_gpuspend();

struct NamedTool {
    std::string_view name;
    std::unique_ptr<Tool> (*make)();
};
inline constexpr NamedTool tools[] = {
    {"cudatop", make_cudatop},   {"cudalaunch", make_cudalaunch}, {"cudamemcpy", make_cudamemcpy},
    {"cudasync", make_cudasync}, {"gpualloc", make_gpualloc},     {"cudagraph", make_cudagraph},
    {"nvioctl", make_nvioctl},   {"cudagap", make_cudagap},       {"ncclwait", make_ncclwait},
    {"gpuspend", make_gpuspend},
};

// Aliases. gpuioctl is another name for nvioctl, which also shows calls into AMD's driver.
struct SecondName {
    std::string_view name, of;
};
inline constexpr SecondName second_names[] = {{"gpuioctl", "nvioctl"}};

// Programs that only read recordings of the tools: they trace nothing and do not need root.
int run_cudadiff(int argc, char** argv);

struct NamedReader {
    std::string_view name;
    int (*run)(int argc, char** argv);
};
inline constexpr NamedReader readers[] = {{"cudadiff", run_cudadiff}};

} // namespace gpusnoop
