// SPDX-License-Identifier: Apache-2.0
// Hooks on calls into GPU drivers. A driver's own functions are hooked if possible. Otherwise, system calls are hooked,
// which slows down these system calls in all processes.
#pragma once

#include "attach/links.hpp"
#include "attach/programs.hpp"
#include "attach/tier.hpp"
#include "gpu/gpu_files.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

struct bpf_object;

namespace gpusnoop {

enum class DriverHook : uint8_t {
    fentry,     // hooks the driver's functions; needs BTF of the driver's module
    kprobe,     // hooks the driver's functions; needs no BTF
    tracepoint, // hooks system calls of all processes, but counts only calls on GPU device nodes
};

inline constexpr std::string_view driver_hook_names[] = {"fentry", "kprobe", "tracepoint"};

class DriverHooks : public KernelHooks {
public:
    // Selects the BPF programs to load. Must therefore run after the BPF object is opened and before it is loaded. If
    // `forced` is set, no other method is used, and hook_new_drivers() throws Error if that method fails.
    DriverHooks(bpf_object* object, std::optional<DriverHook> forced);

    static void leave_out(bpf_object* object); // disables the programs of DriverHooks; for runs without DriverHooks
    bool hook_new_drivers() override;          // hooks drivers that have been loaded since the last call
    std::string waits_for() const override;
    std::string not_traced() const override;
    unsigned functions() const override; // number of hooked functions and system calls
    std::string ways() const override;   // methods in use: "kprobe", "kprobe, tracepoint", "none"
    std::vector<std::string> summary() const override;

private:
    struct Driver;
    static const Driver drivers[];
    struct Hooked {
        DriverHook method;
        std::vector<std::string> functions;
        Links links;
    };

    bool is_allowed(DriverHook method) const { return !forced_ || *forced_ == method; }
    bool hook_functions(const Driver& driver, const std::set<std::string>& symbols);
    bool hook_function(Hooked& hooked, const Driver& driver, size_t entry, const std::string& function);
    void hook_system_calls();
    void publish_nodes(const DriverNodes& nodes);
    bool hooked(driver_node node) const;

    bpf_object* object_;
    std::optional<DriverHook> forced_;
    DriverNodes nodes_;
    std::set<std::string> with_btf_; // driver functions for which fentry programs are loaded
    std::map<const Driver*, Hooked> hooked_;
    std::optional<Tracefs> tracefs_;
    Links syscalls_;
};

} // namespace gpusnoop
