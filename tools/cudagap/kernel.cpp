// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/kernel.hpp"

#include "gpu/gpu_files.hpp"

#include "bpf/shared/record.h"
#include "cudagap.skel.h" // must follow the headers of its types

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <string_view>

namespace gpusnoop::cudagap {
namespace {

constexpr uint64_t why_min_gap_ns = 1'000'000; // shorter gaps say little about what holds up a thread

// Name of the tracepoint that the program is attached to; empty if it is not a tracepoint program.
std::string_view tracepoint_of(const bpf_program* program)
{
    constexpr std::string_view kind = "tp_btf/";
    const std::string_view section = bpf_program__section_name(program);
    return section.starts_with(kind) ? section.substr(kind.size()) : std::string_view();
}

bool has_tracepoint_of(const bpf_program* program)
{
    return libbpf_find_vmlinux_btf_id(tracepoint_of(program).data(), BPF_TRACE_RAW_TP) > 0;
}

constexpr std::string_view interrupt_prefix = "interrupt_"; // prefix of the names of programs that trace interrupts

template<class Do>
void for_each_interrupt_program(const bpf_object* object, const Do& action)
{
    bpf_program* program = nullptr;
    bpf_object__for_each_program (program, object)
        if (std::string_view(bpf_program__name(program)).starts_with(interrupt_prefix))
            action(program);
}

// Name of a required feature that the kernel lacks, according to its BTF; empty if it has all.
std::string missing_feature(const bpf_object* object)
{
    bpf_program* program = nullptr;
    bpf_object__for_each_program (program, object) {
        const std::string_view name = tracepoint_of(program);
        if (!name.empty() && bpf_program__autoload(program) && !has_tracepoint_of(program))
            return fmt::format("the BPF tracepoint {}", name);
    }
    const std::unique_ptr<btf, decltype(&btf__free)> types(btf__load_vmlinux_btf(), btf__free);
    if (types && btf__find_by_name_kind(types.get(), "sched_info", BTF_KIND_STRUCT) < 0)
        return "run-queue wait accounting (CONFIG_SCHED_INFO)";
    return {};
}

Error missing_error(std::string_view feature)
{
    return Error(fmt::format("this kernel lacks {}, which cudagap needs to attribute time", feature),
                 "cudasync shows the time in calls that wait for the GPU, and cudatop how processes spend their time");
}

// True for tracepoint programs, which are needed no matter how probes are attached.
bool is_needed(const bpf_object* object, const std::string& name)
{
    const bpf_program* program = bpf_object__find_program_by_name(object, name.c_str());
    return program && !tracepoint_of(program).empty();
}

void set_driver_majors(cudagap_bpf& skeleton)
{
    DriverNodes nodes = driver_nodes();
    add_nvidia_nodes(nodes); // in case the driver is loaded later
    for (const auto& [number, node] : nodes)
        if (const uint32_t major = major_of(number); major < CHARACTER_DEVICE_MAJORS)
            skeleton.rodata->driver_majors[major / 64] |= uint64_t{1} << major % 64;
}

} // namespace

void configure_kernel_side(const BpfObject& bpf, const Settings& settings, uint64_t unit_ns)
{
    auto& skeleton = bpf.as<cudagap_bpf>();
    set_driver_majors(skeleton);
    auto& data = *skeleton.rodata;
    data.emit_gaps = settings.events || settings.why;
    data.count_gaps = settings.histogram();
    data.gaps_of_streams = settings.view.stream;
    data.least_gap_ns = settings.least_ns.value_or(settings.why ? why_min_gap_ns : 0);
    data.gap_unit_ns = unit_ns;
    data.follow_wakers = data.emit_gaps;
    data.follow_switches = !settings.cheap;
    data.stacks_of_blocks = settings.stacks;
    data.count_files = settings.files;
    data.count_blocks = settings.stacks && !settings.events;

    const auto& programs = skeleton.progs;
    bpf_program__set_autoload(programs.switched, data.follow_switches);
    for (bpf_program* program :
         {programs.waking, programs.hrtimer_begins, programs.hrtimer_ends, programs.timer_begins, programs.timer_ends})
        bpf_program__set_autoload(program, data.follow_wakers);
    bpf_program__set_autoload(programs.faulted,
                              (data.emit_gaps || data.count_files) && has_tracepoint_of(programs.faulted));
    bpf_program__set_autoload(programs.disk_asked, data.count_files);
    // Some tracepoints exist only on one architecture, or only with certain kernel options.
    for_each_interrupt_program(skeleton.obj, [&](bpf_program* program) {
        bpf_program__set_autoload(program, settings.interrupts && has_tracepoint_of(program));
    });

    const auto leave_empty_unless = [](bool used, bpf_map* table) {
        if (!used)
            bpf_map__set_max_entries(table, 1);
    };
    const auto& maps = skeleton.maps;
    leave_empty_unless(data.stacks_of_blocks, maps.block_stacks);
    UserStacks::follow_python(bpf, data.stacks_of_blocks && UserStacks::can_follow_python() ? PYTHON_STACKS : 0);
    UserStacks::follow_windows(bpf, data.stacks_of_blocks ? WINDOW_STACKS : 0);
    leave_empty_unless(data.count_blocks, maps.block_counts);
    leave_empty_unless(data.count_files, maps.file_counts);
    leave_empty_unless(data.follow_wakers, maps.followed_threads);
    leave_empty_unless(data.count_gaps, maps.gap_counts);
    leave_empty_unless((data.count_gaps || data.emit_gaps) && !data.gaps_of_streams, maps.gaps);
    leave_empty_unless(data.gaps_of_streams, maps.stream_gaps);
    leave_empty_unless(settings.events, maps.correlated);
    for (bpf_map* unused : {maps.legacy_shapes, maps.contexts, maps.primaries, maps.captures, maps.capturing_streams,
                            maps.captured_events})
        leave_empty_unless(false, unused);
}

void explain(const LoadError& error, bpf_object* object)
{
    if (const std::string missing = missing_feature(object); !missing.empty())
        throw missing_error(missing);
    const Refusal& refusal = error.refusal();
    if (is_needed(object, refusal.program))
        throw Error(refusal.text(), refusal.hint()); // there is no fallback
}

void follow_kernel(cudagap_bpf& skeleton)
{
    const bpf_object_skeleton& all = *skeleton.skeleton;
    for (int i = 0; i < all.prog_cnt; i++) {
        const bpf_prog_skeleton& entry = all.progs[i];
        if (const std::string_view name = tracepoint_of(*entry.prog);
            !name.empty() && bpf_program__autoload(*entry.prog)) {
            *entry.link = bpf_program__attach(*entry.prog);
            if (!*entry.link)
                throw missing_error(fmt::format("the BPF tracepoint {}", name));
        }
    }
}

} // namespace gpusnoop::cudagap
