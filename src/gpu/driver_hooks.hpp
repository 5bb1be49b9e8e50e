// SPDX-License-Identifier: Apache-2.0
// How calls into GPU drivers are hooked on this kernel. Chosen by trying, driver by driver: the driver's own functions
// where they can be hooked, for then nothing else on the machine pays; system calls otherwise.
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
    fentry,     // a function whose module has BTF
    kprobe,     // a function
    tracepoint, // system calls of everybody, of which those on device nodes count
};

inline constexpr std::string_view driver_hook_names[] = {"fentry", "kprobe", "tracepoint"};

class DriverHooks : public KernelHooks {
public:
    // To be called between open and load: chooses the programs. forced: this way, or Error.
    DriverHooks(bpf_object* object, std::optional<DriverHook> forced);

    static void leave_out(bpf_object* object); // all of them, instead of the constructor
    bool hook_new_drivers() override;          // for drivers that are there and are not hooked yet
    std::string waits_for() const override;
    std::string not_traced() const override;
    unsigned functions() const override; // or system calls
    std::string ways() const override;   // "kprobe", "kprobe, tracepoint"; "none"
    std::vector<std::string> summary() const override;

private:
    struct Driver;
    static const Driver drivers[];
    struct Hooked {
        DriverHook way;
        std::vector<std::string> functions;
        Links links;
    };

    bool may(DriverHook way) const { return !forced_ || *forced_ == way; }
    bool hook_functions(const Driver& driver, const std::set<std::string>& symbols);
    bool hook_function(Hooked& hooked, const Driver& driver, size_t entry, const std::string& function);
    void hook_system_calls();
    void publish_nodes(const DriverNodes& nodes);
    bool hooked(driver_node node) const;

    bpf_object* object_;
    std::optional<DriverHook> forced_;
    DriverNodes nodes_;
    std::set<std::string> with_btf_; // functions that programs have been loaded for
    std::map<const Driver*, Hooked> hooked_;
    std::optional<Tracefs> tracefs_;
    Links syscalls_;
};

} // namespace gpusnoop
