// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver_hooks.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cerrno>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr std::array<std::string_view, 4> entries{"ioctl", "open", "close", "mmap"};
constexpr std::array<driver_entry, 4> entry_numbers{ENTRY_IOCTL, ENTRY_OPEN, ENTRY_CLOSE, ENTRY_MMAP};

// Programs of bpf/nvioctl.bpf.c that hook system calls.
struct SystemCall {
    const char* tracepoint;
    const char* program;
};
constexpr SystemCall system_calls[] = {
    {"sys_exit_ioctl", "call_exit"},    {"sys_enter_ioctl", "ioctl_enter"}, {"sys_exit_close", "call_exit"},
    {"sys_enter_close", "close_enter"}, {"sys_exit_mmap", "call_exit"},     {"sys_enter_mmap", "mmap_enter"},
    {"sys_exit_openat", "open_exit"},   {"sys_exit_openat2", "open_exit"},  {"sys_exit_open", "open_exit"},
};

std::string program_name(std::string_view slot, size_t entry, std::string_view side)
{
    return fmt::format("{}_{}_{}", slot, entries[entry], side);
}

bpf_program* find(bpf_object* object, const std::string& name)
{
    bpf_program* program = bpf_object__find_program_by_name(object, name.c_str());
    if (!program)
        throw Error(fmt::format("the BPF object has no program {}", name));
    return program;
}

// Returns the `wanted` names that are symbols of the kernel or its modules.
std::set<std::string> kernel_symbols(const std::set<std::string, std::less<>>& wanted)
{
    std::ifstream file("/proc/kallsyms");
    std::set<std::string> found;
    std::string line;
    while (std::getline(file, line)) {
        // "ffffffffc0a01230 t nvidia_open\t[nvidia]"
        const size_t begin = line.find(' ', line.find(' ') + 1) + 1;
        const std::string_view name = std::string_view(line).substr(begin, line.find('\t', begin) - begin);
        if (wanted.contains(name))
            found.emplace(name);
    }
    return found;
}

} // namespace

// The kernel functions by which a driver handles its entry points: ioctl, open, close and mmap, in the order of
// `entries`. Their names differ between driver versions. Each list in `functions` begins with the outermost
// function, and the first function that exists is hooked.
struct DriverHooks::Driver {
    std::string_view slot; // prefix of the driver's BPF program names
    std::vector<driver_node> nodes;
    std::array<std::vector<std::string>, 4> functions;
    std::string front_end = {}; // function of another driver that, in some versions, receives this driver's calls first

    bool is_loaded(const DriverNodes& known) const
    {
        return std::ranges::any_of(
            known, [this](const auto& one) { return std::ranges::find(nodes, one.second) != nodes.end(); });
    }
};

// Up to driver 535, nvidia_frontend_* receive the calls for both nvidia and nvidia-modeset.
const DriverHooks::Driver DriverHooks::drivers[] = {
    {"nvidia",
     {NODE_NVIDIA_CTL, NODE_NVIDIA_GPU},
     {{{"nvidia_frontend_unlocked_ioctl", "nvidia_unlocked_ioctl"},
       {"nvidia_frontend_open", "nvidia_open"},
       {"nvidia_frontend_close", "nvidia_close"},
       {"nvidia_frontend_mmap", "nvidia_mmap"}}}},
    {"modeset",
     {NODE_NVIDIA_MODESET},
     {{{"nvkms_unlocked_ioctl"}, {"nvkms_open"}, {"nvkms_close"}, {"nvkms_mmap"}}},
     "nvidia_frontend_unlocked_ioctl"},
    {"caps", {NODE_NVIDIA_CAPS}, {{{}, {"nv_cap_drv_open"}, {"nv_cap_drv_release"}, {}}}},
    {"uvm",
     {NODE_NVIDIA_UVM},
     {{{"uvm_unlocked_ioctl_entry"}, {"uvm_open_entry"}, {"uvm_release_entry"}, {"uvm_mmap_entry"}}}},
    {"uvm_tools",
     {NODE_NVIDIA_UVM_TOOLS},
     {{{"uvm_tools_unlocked_ioctl_entry"}, {"uvm_tools_open_entry"}, {"uvm_tools_release_entry"}, {}}}},
    {"kfd", {NODE_KFD}, {{{"kfd_ioctl"}, {"kfd_open"}, {"kfd_release"}, {"kfd_mmap"}}}},
    {"amdgpu", {NODE_AMDGPU}, {{{"amdgpu_drm_ioctl"}, {"drm_open"}, {"drm_release"}, {"drm_gem_mmap"}}}},
};

DriverHooks::DriverHooks(bpf_object* object, std::optional<DriverHook> forced) : object_(object), forced_(forced)
{
    const DriverNodes nodes = driver_nodes();
    for (const Driver& driver : drivers) {
        // Drivers that are loaded later are hooked by kprobes instead, because searching the kernel's BTF for functions
        // of missing drivers would take 35 ms.
        const bool may_be_loaded = is_allowed(DriverHook::fentry) && driver.is_loaded(nodes);
        for (size_t entry = 0; entry < entries.size(); entry++) {
            bool found = false;
            for (const std::string& function : driver.functions[entry]) {
                if (found || !may_be_loaded)
                    break;
                // bpf_program__set_attach_target() fails if neither the kernel's nor a module's BTF has the function.
                found = true;
                for (std::string_view side : {"entry", "return"})
                    found &= bpf_program__set_attach_target(find(object, program_name(driver.slot, entry, side)), 0,
                                                            function.c_str()) == 0;
                if (found)
                    with_btf_.insert(function);
            }
            for (std::string_view side : {"entry", "return"})
                bpf_program__set_autoload(find(object, program_name(driver.slot, entry, side)), found);
        }
    }
    for (const char* name : {"function_entry", "function_return"})
        bpf_program__set_autoload(find(object, name), is_allowed(DriverHook::kprobe));
    for (const SystemCall& call : system_calls)
        bpf_program__set_autoload(find(object, call.program), is_allowed(DriverHook::tracepoint));
}

void DriverHooks::leave_out(bpf_object* object)
{
    auto none = [&](const std::string& program) { bpf_program__set_autoload(find(object, program), false); };
    for (std::string_view side : {"entry", "return"}) {
        none(fmt::format("function_{}", side));
        for (const Driver& driver : drivers)
            for (size_t entry = 0; entry < entries.size(); entry++)
                none(program_name(driver.slot, entry, side));
    }
    for (const SystemCall& call : system_calls)
        none(call.program);
}

bool DriverHooks::hook_new_drivers()
{
    DriverNodes nodes = driver_nodes();
    const bool forced_syscalls = forced_ == DriverHook::tracepoint && syscalls_.empty();
    if (forced_ == DriverHook::tracepoint)
        add_nvidia_nodes(nodes); // their device numbers are fixed, so they are known before the driver is loaded
    if (nodes == nodes_ && !forced_syscalls)
        return false;
    // Drops the hooks of unloaded drivers, because they stay without effect even if the driver is loaded again.
    std::erase_if(hooked_, [&](const auto& entry) { return !entry.first->is_loaded(nodes); });
    std::set<const Driver*> present;
    for (const Driver& driver : drivers)
        if (driver.is_loaded(nodes) && !hooked_.contains(&driver))
            present.insert(&driver);
    std::set<std::string, std::less<>> wanted;
    for (const Driver* driver : present) {
        wanted.insert(driver->front_end);
        for (const auto& names : driver->functions)
            wanted.insert(names.begin(), names.end());
    }
    const std::set<std::string> symbols = wanted.empty() ? std::set<std::string>() : kernel_symbols(wanted);
    // The nodes are published before hooking, because the BPF programs read them. They are published again afterwards,
    // because NODE_BY_FUNCTION depends on the hooks.
    publish_nodes(nodes);
    bool by_syscall = forced_syscalls;
    for (const Driver* driver : present)
        by_syscall |= !hook_functions(*driver, symbols);
    if (by_syscall && syscalls_.empty())
        hook_system_calls();
    publish_nodes(nodes);
    nodes_ = std::move(nodes);
    return true;
}

// Returns false if the driver's functions cannot be hooked, so that system calls must be hooked instead.
bool DriverHooks::hook_functions(const Driver& driver, const std::set<std::string>& symbols)
{
    if (symbols.contains(driver.front_end) && hooked(NODE_NVIDIA_CTL)) {
        hooked_.emplace(&driver, Hooked{hooked_.begin()->second.method, {driver.front_end}, {}});
        return true;
    }
    for (DriverHook method : {DriverHook::fentry, DriverHook::kprobe}) {
        if (!is_allowed(method))
            continue;
        Hooked hooked{.method = method, .functions = {}, .links = {}};
        std::optional<bool> main_hooked; // true if the driver's first entry point (in the order of `entries`) is hooked
        for (size_t entry = 0; entry < entries.size(); entry++) {
            const auto& names = driver.functions[entry];
            if (names.empty())
                continue;
            const auto name = std::ranges::find_if(names, [&](const auto& n) { return symbols.contains(n); });
            const bool done = name != names.end() && hook_function(hooked, driver, entry, *name);
            main_hooked = main_hooked.value_or(done);
        }
        if (main_hooked.value_or(false)) {
            hooked_.emplace(&driver, std::move(hooked));
            return true;
        }
        detach(std::move(hooked.links));
    }
    if (forced_ && *forced_ != DriverHook::tracepoint)
        throw Error(fmt::format("cannot hook the driver functions of {} by {} on this kernel",
                                node_name(driver.nodes[0], 0), driver_hook_names[static_cast<size_t>(*forced_)]),
                    "leave out --attach to use the best method that works");
    return false;
}

bool DriverHooks::hook_function(Hooked& hooked, const Driver& driver, size_t entry, const std::string& function)
{
    Links links;
    // Attach to the return first, so that the return of every traced call is seen.
    for (std::string_view side : {"return", "entry"}) {
        bpf_link* link = nullptr;
        if (hooked.method == DriverHook::kprobe) {
            LIBBPF_OPTS(bpf_kprobe_opts, options);
            options.bpf_cookie = entry_numbers[entry];
            options.retprobe = side == "return";
            const std::string program = fmt::format("function_{}", side);
            link = bpf_program__attach_kprobe_opts(find(object_, program), function.c_str(), &options);
        } else if (with_btf_.contains(function)) {
            link = bpf_program__attach(find(object_, program_name(driver.slot, entry, side)));
        }
        if (!link)
            return false;
        links.push_back(own_link(link));
    }
    std::ranges::move(links, std::back_inserter(hooked.links));
    hooked.functions.push_back(function);
    return true;
}

void DriverHooks::hook_system_calls()
{
    if (!tracefs_)
        tracefs_.emplace();
    for (const SystemCall& call : system_calls) {
        const auto id = tracepoint_id(*tracefs_, fmt::format("syscalls/{}", call.tracepoint));
        auto link = id ? attach_tracepoint(find(object_, call.program), *id) : nullptr;
        if (link)
            syscalls_.push_back(std::move(link));
        else if (std::string_view(call.tracepoint).ends_with("_ioctl"))
            throw Error(
                fmt::format("cannot trace the drivers' functions, nor the tracepoint syscalls:{}: {}", call.tracepoint,
                            errno_text(errno)),
                "this needs a kernel with CONFIG_KPROBES or CONFIG_FTRACE_SYSCALLS; all distributions have them");
    }
}

void DriverHooks::publish_nodes(const DriverNodes& nodes)
{
    const int map = bpf_object__find_map_fd_by_name(object_, "nodes");
    for (const auto& [number, node] : nodes_)
        if (!nodes.contains(number))
            bpf_map_delete_elem(map, &number);
    for (const auto& [number, node] : nodes) {
        const auto value = static_cast<uint8_t>(node | (hooked(node) ? NODE_BY_FUNCTION : 0));
        if (bpf_map_update_elem(map, &number, &value, BPF_ANY))
            throw Error(fmt::format("too many device nodes: {}", nodes.size()));
    }
}

bool DriverHooks::hooked(driver_node node) const
{
    return std::ranges::any_of(hooked_, [node](const auto& entry) {
        return std::ranges::find(entry.first->nodes, node) != entry.first->nodes.end();
    });
}

std::string DriverHooks::waits_for() const
{
    if (!hooked_.empty() || !syscalls_.empty())
        return {};
    return "no GPU driver is loaded (/proc/devices lists neither NVIDIA nor AMD devices); waiting for one";
}

// Jetson devices up to Orin use the driver nvgpu for compute. NVIDIA's desktop driver may also be loaded on them, for
// displays (JetPack 6).
std::string DriverHooks::not_traced() const
{
    if (access("/sys/module/nvgpu", F_OK) != 0)
        return {};
    return "this machine's GPU uses Tegra's driver (nvgpu), whose calls cannot be traced";
}

unsigned DriverHooks::functions() const
{
    size_t count = syscalls_.size();
    for (const auto& [driver, hooked] : hooked_)
        count += hooked.functions.size();
    return static_cast<unsigned>(count);
}

std::string DriverHooks::ways() const
{
    std::set<std::string_view> ways;
    for (const auto& [driver, hooked] : hooked_)
        ways.insert(driver_hook_names[static_cast<size_t>(hooked.method)]);
    if (!syscalls_.empty())
        ways.insert(driver_hook_names[static_cast<size_t>(DriverHook::tracepoint)]);
    return ways.empty() ? "none" : joined(ways, ", ");
}

std::vector<std::string> DriverHooks::summary() const
{
    std::vector<std::string> lines;
    for (const auto& [driver, hooked] : hooked_)
        lines.push_back(fmt::format("{}: {} on {}", node_name(driver->nodes[0], 0),
                                    driver_hook_names[static_cast<size_t>(hooked.method)],
                                    joined(hooked.functions, ", ")));
    if (!syscalls_.empty())
        lines.push_back(fmt::format("system calls: tracepoints on ioctl, close, mmap and open, {} in total; every such "
                                    "call on this machine is checked",
                                    syscalls_.size()));
    return lines;
}

} // namespace gpusnoop
