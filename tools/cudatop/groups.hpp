// SPDX-License-Identifier: Apache-2.0
// Rows of cudatop. Each call of an interval is added to the groups of the tool that counts this kind of call. A row
// combines the groups of all tools for one process (or thread, pod, ...).
#pragma once

#include "rows/launch_groups.hpp"
#include "rows/process_gpus.hpp"
#include "tools/cudagraph/graphs.hpp"
#include "tools/cudamemcpy/copies.hpp"
#include "tools/cudasync/waits.hpp"
#include "tools/gpualloc/allocations.hpp"
#include "tools/nvioctl/driver_calls.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace gpusnoop::cudatop {

// Grouping dimensions. They apply to calls of all kinds: launches, copies, waits and so on.
struct View : CallView {
    bool kernel = false;
    const ProcessGpus* gpus = nullptr;

    // Used when rows are grouped by device: a row is a GPU of the machine or, if that is unknown, a CUDA device number.
    void set_gpus(const ProcessGpus& known)
    {
        gpus = &known;
        gpu_of = [&known](const call_key& call) { return known.of_call(call); };
    }
    // True if rows are whole processes or groups of processes, perhaps limited to one GPU.
    bool of_processes() const { return !kernel && !who.thread; }
    // True if rows are GPUs.
    bool of_gpus() const { return device && of_processes() && !who.pid && !who.comm && !who.by_owner(); }
};

struct Key : CallKey {
    std::string kernel; // name of the launched kernel; empty for other calls
    auto operator<=>(const Key&) const = default;
};

// A row. A pointer is null if the row has no calls of this kind.
struct Group {
    WhoSeen who;
    std::set<Gpu> devices;             // devices that the row's calls used, as CUDA device numbers; empty: unknown
    const LaunchKey* kernel = nullptr; // null unless rows are grouped by kernel
    const LaunchGroup* launches = nullptr;
    const GraphGroup* graphs = nullptr; // captures and instantiations
    std::array<const CopyGroup*, DIRECTIONS> copies{};
    const WaitGroup* waits = nullptr;
    const WaitGroup* polls = nullptr;
    std::string error;           // name of the most frequent error; empty if there is none
    uint64_t double_counted = 0; // errors of waits that are also counted as errors of copies or frees
    const AllocationGroup* memory = nullptr;
    const DriverGroup* driver = nullptr;
};

class Groups {
public:
    // results: true if the results of copies are known.
    Groups(const View& view, bool results, KernelNames& names, Processes& processes);
    Groups(const Groups&) = delete; // launches_ and the other groups refer to the settings in this object
    Groups& operator=(const Groups&) = delete;

    void add(const CallDelta& delta);
    void add(const Waiting::Part& part);
    void add(const driver_call& pending, uint64_t now_ns);
    // Adds the memory that is held at the end of the interval.
    void add_held(Holdings& holdings, const std::set<ImageId>& ended);
    // Adds a row for a process even if it made no call.
    void add_idle(const ImageId& image);
    // Adds a row for a GPU even if no process uses it.
    void add_gpu(const Gpu& gpu);

    // Returns the rows. They are valid until the next call of an add function.
    std::map<Key, Group> joined() const;

private:
    template<class Settings>
    Settings settings() const;
    bool is_double_counted(const call_key& key) const;

    View view_;
    bool results_;
    Processes& processes_;
    LaunchSettings launch_settings_;
    GraphSettings graph_settings_;
    CopySettings copy_settings_;
    WaitSettings wait_settings_;
    AllocationSettings memory_settings_;
    DriverSettings driver_settings_;
    LaunchGroups launches_;
    GraphGroups graphs_;
    CopyGroups copies_;
    WaitGroups waits_;
    WaitGroups polls_;
    AllocationGroups memory_;
    DriverGroups driver_;
    std::map<CallKey, std::set<Gpu>> devices_;
    std::map<CallKey, uint64_t> double_counted_;
    std::map<CallKey, std::map<std::string, uint64_t>> errors_; // number of errors, by error name
    std::map<CallKey, std::set<ImageId>> idle_;
    std::set<Gpu> gpus_;
};

} // namespace gpusnoop::cudatop
