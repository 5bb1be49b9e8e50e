// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/fields.hpp"

#include "rows/call_fields.hpp"
#include "tools/cudatop/call_results.hpp"
#include "tools/cudatop/cells.hpp"
#include "tools/cudatop/row_gpus.hpp"

namespace gpusnoop::cudatop {
namespace {

using K = Key;
using G = Group;
using C = Context;

Shown on_screen(const C& c)
{
    return c.settings.screen ? Shown::text : Shown::no;
}

Shown by_kernel(const C& c)
{
    return c.settings.rows.kernel ? Shown::both : Shown::no;
}

Shown by_kernel_in_json(const C& c)
{
    return c.settings.rows.kernel ? Shown::json : Shown::no;
}

Shown by_device(const C& c)
{
    return c.settings.rows.device ? Shown::both : Shown::no;
}

// Spinning and sleeping are measured for threads, and cannot be attributed to a kernel or device.
Shown whole_threads(const C& c)
{
    return c.settings.rows.kernel || c.settings.rows.device ? Shown::no : Shown::both;
}

Shown of_processes(const C& c)
{
    return whole_processes(c) ? Shown::both : Shown::no;
}

Shown memory_of_processes(const C& c)
{
    return c.known.memory ? of_processes(c) : Shown::no;
}

// In text, shown like memory_of_processes(); in JSON, always shown.
Shown text_of_processes(const C& c)
{
    return memory_of_processes(c) == Shown::no ? Shown::json : Shown::both;
}

// Hidden if the columns that name the row already show the owner.
Shown where_not_named(const C& c)
{
    const WhoView& who = c.settings.rows.who;
    const bool by_owner_alone = !who.pid && (who.container || who.pod || who.pod_namespace);
    return by_owner_alone ? Shown::no : Shown::text;
}

#define CELL(VALUE)                                                                                                    \
    [](const K& k, const G& g, const C& c) -> Cell {                                                                   \
        (void)k, (void)g, (void)c;                                                                                     \
        return VALUE;                                                                                                  \
    }

#define FIELD(HEADER, KEY, UNIT, WIDTH, SHOWN, VALUE)                                                                  \
    {                                                                                                                  \
        {HEADER, KEY, Unit::UNIT, WIDTH}, SHOWN, CELL(VALUE)                                                           \
    }

// A field whose value is shown in another form in text.
#define IN_TWO_FORMS(HEADER, KEY, UNIT, WIDTH, SHOWN, VALUE, TEXT)                                                     \
    Field<C, K, G> FIELD(HEADER, KEY, UNIT, WIDTH, SHOWN, VALUE).in_text(CELL(TEXT))

#define COLUMN(HEADER, KEY, UNIT, WIDTH, VALUE) FIELD(HEADER, KEY, UNIT, WIDTH, always<C>, VALUE)

// Marks a value that is an estimate if calls are sampled.
Field<C, K, G> of_calls(Field<C, K, G> field)
{
    field.column = gpusnoop::of_calls(field.column);
    return field;
}

// Fields for scripts only: counts of the interval, which text shows as rates, and values that text shows in another
// form.
#define COUNT(KEY, VALUE)                                                                                              \
    {                                                                                                                  \
        FIELD("", KEY, count, 0, json_only<C>, VALUE), "", Usual::no                                                   \
    }
#define COUNT_OF_CALLS(KEY, VALUE)                                                                                     \
    {                                                                                                                  \
        of_calls(FIELD("", KEY, count, 0, json_only<C>, VALUE)), "", Usual::no                                         \
    }
#define FOR_SCRIPTS(KEY, UNIT, SHOWN, VALUE)                                                                           \
    {                                                                                                                  \
        FIELD("", KEY, UNIT, 0, SHOWN, VALUE), "", Usual::no, false                                                    \
    }

const TopField fields[] = {
    {IN_TWO_FORMS("KERNEL", "kernel", text, 30, by_kernel,
                  g.kernel && !g.kernel->kernel.empty() ? Cell(g.kernel->kernel) : Cell(),
                  g.kernel ? Cell(shown_name(*g.kernel, c.settings.names.form)) : Cell()),
     "the kernel's name", Usual::batch, false},
    {IN_TWO_FORMS("DEVICE", "device", count, 7, by_device,
                  k.gpu.by == Gpu::By::ordinal ? Cell(uint64_t{k.gpu.number}) : Cell(),
                  text_if_any(gpu_text(gpus_of(k, g, c).gpus))),
     "the GPU's index; or nvidiaN (its device file), or cuda:N (CUDA's number, which differs between processes)",
     Usual::batch, false},
    {IN_TWO_FORMS("TROUBLE", "trouble", text, 9, always<C>, trouble(k, g, c), marked_trouble(k, g, c)),
     "the worst problem; marks: !! does not work, ! wastes time or memory, . is worth knowing", Usual::batch, false, "",
     false, true},
    {sampled_field<K, G, C>, "", Usual::no, false},
    {sampled_error_field<K, G, C>, "", Usual::no, false},
    FOR_SCRIPTS("vendor", text, json_only<C>, vendors_cell(g.who)),
    FOR_SCRIPTS("severity", text, json_only<C>, severity(k, g, c)),
    {of_calls(COLUMN("LAUNCH/s", "launches_per_second", rate, 8,
                     rate_if(c.known.launches, of(g.launches, &LaunchGroup::kernels), c))),
     "kernels launched directly, not by a graph"},
    COUNT_OF_CALLS("launches", count_if(c.known.launches, of(g.launches, &LaunchGroup::kernels))),
    {COLUMN("MEM", "memory_bytes", bytes, 8, memory(k, g, c)),
     "device memory held, as the driver reports it (NVML); without NVML, only what was allocated since tracing began"},
    FOR_SCRIPTS("memory_source", text, json_only<C>, memory_source(k, g, c)),
    {COLUMN("LIVE", "live_bytes", bytes, 7, traced_memory(g, c)),
     "device memory allocated since tracing began and not freed; >= if the process began earlier and may hold more",
     Usual::no},
    COUNT("live_is_lower_bound",
          count_if(c.known.memory, uint64_t{c.processes.any_began_before_tracing(g.who.images)})),
    {COLUMN("WAIT%", "blocked_percent", percent, 6, share_of_time(g.waits, c, of(g.waits, &WaitGroup::total_ns))),
     "share of the waiting threads' time spent in calls that wait for the device, asleep or spinning", Usual::batch,
     false},
    COUNT("blocked_ns", count_if(c.known.waits, of(g.waits, &WaitGroup::total_ns))),
    COUNT("waits", count_if(c.known.waits, of(g.waits, &WaitGroup::calls))),
    {FIELD("SPIN%", "waits_spinning_percent", percent, 6, whole_threads, share_of_time(g.waits, c, spinning_ns(g, c))),
     "the part of WAIT% in which the thread used a CPU (busy-waiting)", Usual::screen, false},
    {FIELD("ASLEEP%", "waits_asleep_percent", percent, 7, whole_threads, share_of_time(g.waits, c, asleep_ns(g, c))),
     "the part of WAIT% in which the thread slept", Usual::no, false},
    {FIELD("CPU%", "cpu_percent", percent, 5, of_processes, cell_if(c.diagnosis.cpu_percent(g.who.images))),
     "CPU time of all threads of the process, as a share of one CPU", Usual::screen},
    {FIELD("RUNQ%", "runqueue_percent", percent, 5, of_processes,
           scheduling(g, c, &Diagnosis::Scheduling::waited_percent)),
     "time that threads calling CUDA were ready to run but had no CPU, as a share of one CPU's time", Usual::no},
    {FIELD("SWITCH/s", "switches_per_second", rate, 8, of_processes,
           scheduling(g, c, &Diagnosis::Scheduling::turns_per_second)),
     "how often per second the threads counted in RUNQ% were given a CPU", Usual::no},
    {IN_TWO_FORMS("GPU", "gpu", text, 7, always<C>, text_if_any(gpu_text(gpus_of(k, g, c).gpus)),
                  text_if_any(shown_gpus(gpus_of(k, g, c)))),
     "the GPUs of the process: index, nvidiaN (device file) or cuda:N (CUDA's number); ?0-3: unknown which of these",
     Usual::screen, false},
    FOR_SCRIPTS("gpu_source", text, json_only<C>, text_if_any(source_name(gpus_of(k, g, c).source))),
    FOR_SCRIPTS("gpu_possible", text, json_only<C>, text_if_any(gpu_text(gpus_of(k, g, c).possible))),
    {IN_TWO_FORMS("ERROR", "error", text, 15, always<C>, text_if_any(g.error), text_if_any(short_error(g.error))),
     "the most frequent error", Usual::screen, false, "", false, false, true},
    {FIELD("POD/COMMAND", "", text, 16, where_not_named, pod_or_command(g, c)),
     "the pod, container, job or service of the process; without one, its command line", Usual::batch, false},
    FOR_SCRIPTS("command_line", text, json_only<C>, command_line_cell(g.who, c.processes)),
    {FIELD("TREND", "", text, 8, on_screen, Cell()),
     "history of the column that rows are sorted by, or of LAUNCH/s if that column is text", Usual::screen, false},
    {of_calls(COLUMN("GRAPH/s", "graph_launches_per_second", rate, 7,
                     rate_if(c.known.launches, of(g.launches, &LaunchGroup::graphs), c))),
     "graphs launched", Usual::screen},
    COUNT_OF_CALLS("graph_launches", count_if(c.known.launches, of(g.launches, &LaunchGroup::graphs))),
    {of_calls(COLUMN("GKERN/s", "graph_kernels_per_second", rate, 8, graph_kernels_per_second(g, c))),
     "kernels started by graph launches, if the graph was built since tracing began"},
    COUNT_OF_CALLS("graph_kernels", cell_if(graph_kernels(g, c))),
    COUNT_OF_CALLS("graphs_unknown", count_if(c.known.graphs, of(g.launches, &LaunchGroup::graphs_unknown))),
    {COLUMN("CAPT/s", "captures_per_second", rate, 6, rate_if(c.known.graphs, of(g.graphs, &GraphGroup::captures), c)),
     "captures that became graphs", Usual::screen},
    COUNT("captures", count_if(c.known.graphs, of(g.graphs, &GraphGroup::captures))),
    COUNT("failed_captures", count_if(c.known.graphs, of(g.graphs, &GraphGroup::failed_captures))),
    {COLUMN("INST/s", "instantiates_per_second", rate, 6,
            rate_if(c.known.graphs, of(g.graphs, &GraphGroup::instantiates), c)),
     "instantiations of graphs", Usual::screen},
    COUNT("instantiates", count_if(c.known.graphs, of(g.graphs, &GraphGroup::instantiates))),
    COUNT_OF_CALLS("grids", count_if(c.known.launches, of(g.launches, &LaunchGroup::grids))),
    COUNT_OF_CALLS("small_grids", count_if(c.known.launches, of(g.launches, &LaunchGroup::small_grids))),
    COUNT_OF_CALLS("host_functions", count_if(c.known.launches, of(g.launches, &LaunchGroup::host_functions))),
    COUNT_OF_CALLS("captured", count_if(c.known.graphs, of(g.launches, &LaunchGroup::captured))),
    {COLUMN("p99(us)", "launch_p99_ns", ns_as_us, 9, g.launches ? duration_cell(*g.launches, 0.99) : Cell()),
     "99th percentile of the time that a launch call takes on the host", Usual::no, false, "--latency"},
    {of_calls(COLUMN("H2D/s", "h2d_bytes_per_second", bytes, 7, bytes_per_second(bytes(g, {DIRECTION_H2D}), c))),
     "bytes copied to the device"},
    {of_calls(COLUMN("D2H/s", "d2h_bytes_per_second", bytes, 7, bytes_per_second(bytes(g, {DIRECTION_D2H}), c))),
     "bytes copied from the device", Usual::screen},
    {of_calls(COLUMN("D2D/s", "d2d_bytes_per_second", bytes, 7,
                     bytes_per_second(bytes(g, {DIRECTION_D2D, DIRECTION_P2P}), c))),
     "bytes copied within devices or between them", Usual::no},
    COUNT_OF_CALLS("h2d_bytes", count_if(c.known.copies, bytes(g, {DIRECTION_H2D}))),
    COUNT_OF_CALLS("d2h_bytes", count_if(c.known.copies, bytes(g, {DIRECTION_D2H}))),
    COUNT_OF_CALLS("d2d_bytes", count_if(c.known.copies, bytes(g, {DIRECTION_D2D, DIRECTION_P2P}))),
    {of_calls(COLUMN("COPY/s", "copies_per_second", rate, 8,
                     rate_if(c.known.copies, sum<CopyGroup>(g.copies, &CopyGroup::copies), c))),
     "copies, memsets and prefetches", Usual::no},
    COUNT_OF_CALLS("copies", count_if(c.known.copies, sum<CopyGroup>(g.copies, &CopyGroup::copies))),
    COUNT_OF_CALLS("small_copies", count_if(c.known.copies, sum<CopyGroup>(g.copies, &CopyGroup::small))),
    COUNT_OF_CALLS("copies_unsized", count_if(c.known.copies, sum<CopyGroup>(g.copies, &CopyGroup::unsized))),
    {COLUMN("SMALL%", "small_percent", percent, 6, small_share(g, c)),
     "share of copies under 64 KiB, among copies of known size", Usual::screen, false},
    {COLUMN("ALLOC/s", "allocs_and_frees_per_second", rate, 8,
            rate_if(c.known.memory, of(g.memory, &AllocationGroup::allocs) + of(g.memory, &AllocationGroup::frees), c)),
     "allocations and frees", Usual::screen},
    COUNT("allocs", count_if(c.known.memory, of(g.memory, &AllocationGroup::allocs))),
    COUNT("frees", count_if(c.known.memory, of(g.memory, &AllocationGroup::frees))),
    {FIELD("GROW/s", "growth_bytes_per_second", bytes, 7, memory_of_processes,
           cell_if(c.diagnosis.growth(g.who.images))),
     "growth of device memory (allocated less freed) per second, over the last 5 s", Usual::screen},
    {IN_TWO_FORMS("FULL", "full_in_seconds", rate, 7, text_of_processes,
                  c.known.memory&& whole_processes(c) ? cell_if(full_in_seconds(g, c)) : Cell(),
                  clock_cell(full_in_seconds(g, c))),
     "time until the process's GPU is full at the rate of GROW/s, in minutes and seconds; needs NVML", Usual::no,
     false},
    {COLUMN("FAILED", "allocation_failures", count, 6,
            count_if(c.known.memory, of(g.memory, &AllocationGroup::failures))),
     "allocations and frees that failed", Usual::screen, true, "", false, false, true},
    COUNT("out_of_memory", count_if(c.known.memory, of(g.memory, &AllocationGroup::out_of_memory))),
    {COLUMN("POLL%", "spinning_percent", percent, 6, share_of_time(g.polls, c, of(g.polls, &WaitGroup::total_ns))),
     "share of the polling threads' time spent in calls that poll for completion", Usual::screen, false},
    COUNT("polls", count_if(c.known.waits, of(g.polls, &WaitGroup::calls))),
    {COLUMN("IOCTL/s", "ioctls_per_second", rate, 7,
            c.ioctls ? per_second(of(g.driver, &DriverGroup::calls), c) : Cell()),
     "calls into the GPU driver", Usual::no},
    COUNT("ioctls", c.ioctls ? Cell(of(g.driver, &DriverGroup::calls)) : Cell()),
    {COLUMN("IOCTL%", "ioctl_percent", percent, 6,
            c.ioctls ? share(of(g.driver, &DriverGroup::total_ns), static_cast<uint64_t>(c.seconds * 1e9)) : Cell()),
     "time in driver calls, as a share of one thread's time", Usual::no, false},
    COUNT("ioctl_ns", c.ioctls ? Cell(of(g.driver, &DriverGroup::total_ns)) : Cell()),
    {COLUMN("ERR/s", "errors_per_second", rate, 6, rate_if(c.known.results, errors(g), c)),
     "calls that failed: waits, allocations, graphs, driver calls; launches and copies only with --latency",
     Usual::batch, true, "", false, false, true},
    COUNT("errors", count_if(c.known.results, errors(g))),
    {COLUMN("XID", "xid", count, 4, last_xid(g, c)),
     "the last GPU error (Xid) that the driver reported for the process", Usual::screen, false, "", false, false, true},
    COUNT("xids", xids(g, c)),
    {COLUMN("USER", "user", text, 8, user(g, c)), "effective user of the process", Usual::screen, false},
    {IN_TWO_FORMS("QUIET", "quiet_seconds", rate, 7, always<C>, cell_if(c.diagnosis.quiet_seconds(g.who.images)),
                  clock_cell(c.diagnosis.quiet_seconds(g.who.images))),
     "time since the process was last in a CUDA call, or since tracing began, in minutes and seconds", Usual::screen,
     false},
    {COLUMN("SM%", "sm_percent", percent, 5, use_percent(k, g, c, &NvmlUse::sm_percent)),
     "share of time in which kernels of the process ran, according to the GPU's own counters", Usual::screen, true, "",
     true},
    {COLUMN("CU%", "cu_percent", percent, 5, use_percent(k, g, c, &NvmlUse::cu_percent)),
     "share of the compute units of AMD GPUs that hold work of the process at this moment", Usual::no, false, "", true},
    {COLUMN("SDMA%", "sdma_percent", percent, 5, use_percent(k, g, c, &NvmlUse::sdma_percent)),
     "share of time in which copy engines of AMD GPUs worked for the process, averaged over five seconds or more",
     Usual::no, false, "", true},
    COUNT("nvml_bytes", cell_if(memory_by_driver(k, g, c))),
    {COLUMN("GPU%", "gpu_percent", percent, 5, busiest(k, g, c)),
     "how busy the process's busiest GPU is, counting the work of all processes", Usual::no, false, "", true},
    {COLUMN("SMACT%", "gpu_sm_active_percent", percent, 6, efficiency(k, g, c, &NvmlEfficiency::sm_active)),
     "share of SMs with work, on the process's GPUs, counting all processes; Hopper and newer", Usual::no, false, "",
     true},
    {COLUMN("TENSOR%", "gpu_tensor_active_percent", percent, 7, efficiency(k, g, c, &NvmlEfficiency::tensor_active)),
     "how busy the tensor cores of the process's GPUs are, counting all processes; Hopper and newer", Usual::no, false,
     "", true},
    {COLUMN("DRAM%", "gpu_dram_active_percent", percent, 6, efficiency(k, g, c, &NvmlEfficiency::dram_active)),
     "how busy the memory of the process's GPUs is, counting all processes; Hopper and newer", Usual::no, false, "",
     true},
    {COLUMN("HELD", "held_gpus", text, 8, text_if_any(gpu_text(c.held.of(g.who)))),
     "the GPUs that Kubernetes allotted to the row's pod or container, used or not", Usual::no, false},
    {COLUMN("POWER", "gpu_watts", rate, 6, power(k, g, c)),
     "power draw of the process's GPUs in watts, counting all processes", Usual::no, false, "", true},
    {COLUMN("MIG", "mig_instance", text, 10, cell_if(c.figures.instance_of(g.who.images))),
     "the MIG instance that the process runs on", Usual::no, false, "", true},
    FOR_SCRIPTS("name_source", text, by_kernel_in_json,
                g.kernel && !g.kernel->kernel.empty() ? Cell(std::string(source_name(g.launches->name_source)))
                                                      : Cell()),
    FOR_SCRIPTS("handle", hex, by_kernel_in_json, g.kernel&& g.kernel->handle ? Cell(g.kernel->handle) : Cell()),
};

#undef FOR_SCRIPTS
#undef COUNT
#undef COLUMN
#undef IN_TWO_FORMS
#undef FIELD
#undef CELL

} // namespace

std::span<const TopField> own_fields()
{
    return fields;
}

} // namespace gpusnoop::cudatop
