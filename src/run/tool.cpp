// SPDX-License-Identifier: Apache-2.0
#include "run/tool.hpp"

#include "attach/load_plan.hpp"
#include "attach/programs.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "bpf/shared/record.h"
#include "names/user_stacks.hpp"
#include "run/command_line.hpp"
#include "run/shared_options.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop {

std::unique_ptr<Output> make_output(const Options& options)
{
    return options.json ? make_json_output(this_run()) : make_text_output(options.timestamps);
}

namespace {

// Sets the variables that shared headers define in every BPF object.
void configure_shared(const BpfObject& bpf, const Options& options, const Filters& filters)
{
    bpf.set<uint32_t>("ring_wake_shift",
                      // wakes the reader at each eighth of the ring
                      static_cast<uint32_t>(std::countr_zero(uint64_t{options.ring_mb} << 20)) - 3);
    bpf.set("stack_of_cpu", filters.guarded);
    bpf.set("target_tid", static_cast<uint32_t>(options.tid));
    bpf.set("filter_pids", filters.pids);
    bpf.set("v1_controller", static_cast<uint32_t>(filters.v1));
    bpf.set("filter_cgroups", filters.cgroups);
    bpf.set("filter_v1", filters.cgroups_v1);
    std::array<char, 16> name{}, mask{};
    const size_t size = std::min(options.comm.size(), name.size() - 1);
    std::copy_n(options.comm.begin(), size, name.begin());
    std::fill_n(mask.begin(), size, '\xff');
    bpf.set("target_comm", name);
    bpf.set("target_comm_mask", mask);
}

// Sets the variables of BPF objects with user-space probes; does nothing for others.
void configure_probes(const BpfObject& bpf, std::span<const Probe> probes, const Filters& filters)
{
    const std::span<std::byte> rows = bpf.variable("probe_rows");
    if (rows.empty())
        return;
    if (probes.size() * sizeof(probe_row) > rows.size())
        throw Error("the probe table has more rows than the BPF program can hold");
    for (size_t i = 0; i < probes.size(); i++)
        memcpy(&rows[i * sizeof(probe_row)], &probes[i].row, sizeof(probe_row));
    bpf.set("rows_by_address", filters.tier == Tier::tracefs);
    bpf.set("filter_second", filters.pids_of_second);
}

} // namespace

Tool::Tool(const ToolSpec& spec)
    : spec_(spec), command_line_(std::make_unique<CommandLine>(spec.name, spec.summary, spec.examples))
{
    options_.ring_mb = spec.ring_mb;
    add_shared_options(*command_line_, options_, spec.attach_names, spec.without_interval);
}

Tool::~Tool() = default;

const Options& Tool::parse(int argc, char** argv)
{
    char** const end = argv + argc;
    char** const dashes = std::find(argv, end, std::string_view("--"));
    if (dashes != end) {
        options_.program.assign(dashes + 1, end);
        if (options_.program.empty())
            throw UsageError("a program must follow --");
    }
    command_line_->parse(static_cast<int>(dashes - argv), argv);
    check_replay(*command_line_, options_);
    command_line_.reset();
    options_.user_stacks |= options_.draws_flames();
    check_shared_options(options_);
    return options_;
}

void Tool::open()
{
    bpf_ = spec_.open();
    opened_ = {.object = bpf_.get(),
               .switches = {.attach_phase = bpf_.find<__u32>("attach_phase"),
                            .forwarding_files = bpf_.find<__u64>("forwarding_files"),
                            .traced_since = bpf_.find<__u64>("traced_since"),
                            .naming = bpf_.find<bool>("naming")}};
}

void Tool::prepare(std::span<const Probe> probes, const Filters& filters)
{
    probes_ = probes;
    configure_shared(bpf_, options_, filters);
    configure_probes(bpf_, probes, filters);
    configure(filters);
}

void Tool::load_programs(bool together)
try {
    load_into_kernel([this] { return bpf_.load(); }, together);
} catch (const LoadError& error) {
    if (spec_.explain)
        spec_.explain(error, bpf_.get());
    throw;
}

void Tool::load()
{
    processes_.emplace(bpf_.fd("processes"), options_.host_root, &wait_budget_);
}

void Tool::begin(const Running& running)
{
    running_.emplace(running);
    processes_->set_tracing_start(running.since_ns);
}

void Tool::receive(Output& output, const void* data, size_t size)
{
    RingRecord received{.type = 0, .data = data, .size = size};
    memcpy(&received.type, data, sizeof(received.type));
    if (user_stacks_ && user_stacks_->learn(received.type, {static_cast<const uint8_t*>(data), size}))
        return;
    if (const auto* process = received.as<process_record>(RECORD_PROCESS))
        processes_->learn(*process);
    else
        record(output, received);
}

uint64_t Tool::calls_differing() const
{
    return user_stacks_ ? user_stacks_->mismatches_since_last() : 0;
}

void Tool::on_exec(pid_t pid, uint64_t time_ns)
{
    if (user_stacks_)
        user_stacks_->on_exit(pid);
    if (processes_->on_exec(static_cast<uint32_t>(pid), time_ns))
        leaving_.insert(static_cast<uint32_t>(pid));
}

} // namespace gpusnoop
