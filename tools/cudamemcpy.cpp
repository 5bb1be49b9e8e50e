// SPDX-License-Identifier: Apache-2.0
// cudamemcpy: who copies how much, in which direction, in how small pieces, and how long the calls take.
#include "call_fields.hpp"
#include "call_tool.hpp"
#include "clock.hpp"
#include "cudamemcpy_columns.hpp"
#include "skeleton.hpp"

#include "../bpf/attach.h"
#include "cudamemcpy.skel.h" // after the types that it mentions

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace gpusnoop::cudamemcpy {
namespace {

class CudaMemcpy : public CallTool {
public:
    CudaMemcpy() : CallTool(settings_) {}

    std::string_view name() const override { return "cudamemcpy"; }
    std::string_view summary() const override
    {
        return "Counts CUDA copies, sets and prefetches as they are asked for: by process and direction, with bytes, "
               "sizes, rates, latency, failures and user stacks on request.";
    }
    std::string_view examples() const override
    {
        return "  cudamemcpy                  # copies of all processes by direction, until Ctrl-C\n"
               "  cudamemcpy 1                # a table each second\n"
               "  cudamemcpy -l -p 1234       # with the time that the calls take on the host\n"
               "  cudamemcpy --by pod,kind 5  # which pod copies how much\n"
               "  cudamemcpy --by memory      # from pinned or pageable memory?\n"
               "  cudamemcpy -H size          # how small the copies are\n"
               "  cudamemcpy -H rate -P       # how fast the synchronous ones are, for each process\n"
               "  cudamemcpy -e -c pod:NS/NAME    # one line per copy of a pod\n"
               "  cudamemcpy -U -d 10         # call stacks that copy most, over 10 seconds\n"
               "  cudamemcpy -x               # only copies that fail, with the error\n"
               "  cudamemcpy --json 1         # one JSON object per row and second\n";
    }

    void add_options(CLI::App& app) override;
    std::string traced() const override;
    std::vector<Hook> hooks(std::span<const Probe> probes) const override;
    bpf_object* open() override;
    void configure(const Options& options, std::span<const Probe> probes, const Filters& filters) override;
    void load() override;
    bool tick(Output& output) override;
    void attached_again() override { skeleton_->bss->attach_generation = COOKIE_SECOND; }

private:
    void settle() override;
    std::vector<Probe> choose_probes() const override;
    int load_skeleton() override { return cudamemcpy_bpf::load(skeleton_.get()); }
    bpf_object* object() override { return skeleton_->obj; }
    std::vector<const char*> tables_of(std::span<const ImageId> gone) override;
    void print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds) override;
    void print_event(Output& output, const call_event& event) override;

    Settings settings_;
    Skeleton<cudamemcpy_bpf> skeleton_;
    std::optional<CallEvents> lines_;
};

void CudaMemcpy::add_options(CLI::App& app)
{
    settings_.sort = "bytes";
    add_call_options(app, "kind, memory, form, ", "pid,kind",
                     "size, latency, or rate (of synchronous copies: their bytes by the time of the call)");
    app.add_flag("-l,--latency", settings_.latency, "measure the host side of the call, and count errors");
}

void CudaMemcpy::settle()
{
    Settings& s = settings_;
    constexpr std::pair<std::string_view, Measure> measures[] = {
        {"", Measure::none}, {"size", Measure::size}, {"latency", Measure::latency}, {"rate", Measure::rate}};
    auto measure = std::ranges::find(measures, s.measure, &std::pair<std::string_view, Measure>::first);
    if (measure == std::end(measures))
        throw UsageError(fmt::format("-H takes size, latency or rate, not '{}'", s.measure));
    s.histogram_of = measure->second;
    if (s.histogram_of == Measure::rate && options_.failed_only)
        throw UsageError("copies that failed have no rate: leave out -x or -H");
    check_sort(s.sort);
    s.latency |= s.histogram_of == Measure::latency || s.histogram_of == Measure::rate;
    const Dimension own[] = {{"kind", &s.direction}, {"memory", &s.memory}, {"form", &s.form}};
    if (s.by) {
        parse_by(*s.by, s.view, own);
    } else {
        s.direction = true;
        s.view.who.pid |= !s.histogram();
    }
    // The time of a synchronous call and that of an asynchronous one are of two kinds.
    s.form |= s.latency;
}

std::string CudaMemcpy::traced() const
{
    return fmt::format("{}copies{}{}", options_.failed_only ? "failed " : "",
                       settings_.runtime ? settings_.driver ? " (driver and runtime)" : " (runtime)" : "",
                       settings_.latency ? " (the latency of an asynchronous one is the time to submit it)" : "");
}

std::vector<Probe> CudaMemcpy::choose_probes() const
{
    std::vector<Probe> all;
    for (Library library : layers()) {
        append_probes(all, library, copy_kinds);
        append_probes(all, library, batch_kinds);
    }
    append_probes(all, Library::driver, capture_kinds);
    append_probes(all, Library::driver, memory_kinds);
    std::erase_if(all, [](const Probe& probe) { return !tells_memory(probe.row); });
    if (settings_.view.device)
        for (Library library : {Library::driver, Library::runtime})
            append_probes(all, library, device_kinds);
    return all;
}

std::vector<Hook> CudaMemcpy::hooks(std::span<const Probe> probes) const
{
    Hook state{"state", true, probes_of(probes, capture_kinds), true};
    std::ranges::copy(probes_of(probes, device_kinds), std::back_inserter(state.probes));
    std::vector<Hook> all{{"memory", true, probes_of(probes, memory_kinds), true},
                          {"copy", needs_returns(), probes_of(probes, copy_kinds), true},
                          {"batch", needs_returns(), probes_of(probes, batch_kinds), true},
                          state};
    // Which driver calls are a runtime call's own is known best by its return.
    if (settings_.driver && settings_.runtime && !needs_returns()) {
        Hook leave{"leave", true, probes_of(probes, copy_kinds), true};
        std::ranges::copy(probes_of(probes, batch_kinds), std::back_inserter(leave.probes));
        std::erase_if(leave.probes, [&](unsigned i) { return probes[i].library != Library::runtime; });
        all.push_back(leave);
    }
    return all;
}

bpf_object* CudaMemcpy::open()
{
    skeleton_ = open_skeleton<cudamemcpy_bpf>();
    return skeleton_->obj;
}

void CudaMemcpy::configure(const Options& options, std::span<const Probe> probes, const Filters& filters)
{
    auto& data = *skeleton_->rodata;
    configure_shared(data, options, filters);
    configure_probes(data, probes, filters);
    configure_calls(data, settings_, options);
    data.per_memory = settings_.memory || settings_.events;
    data.per_size = settings_.histogram_of == Measure::size;
    data.measure_rate = settings_.histogram_of == Measure::rate;
    if (data.measure_rate || data.per_size)
        data.duration_unit_ns = 1;
    size_tables(skeleton_->obj);
}

void CudaMemcpy::load()
{
    CallTool::load();
    lines_.emplace(options_, settings_, processes(), probes(),
                   std::initializer_list<Column>{
                       {"KIND", "kind", Unit::text, 8},
                       {"FORM", "form", Unit::text, 5},
                       {"SIZE", "bytes", Unit::bytes, 7},
                       {"FROM", "source", Unit::text, 8},
                       {"TO", "destination", Unit::text, 8},
                       {"", "source_address", Unit::hex, 0, false},
                       {"", "destination_address", Unit::hex, 0, false},
                   },
                   std::initializer_list<Column>{
                       {"", "copies", Unit::count, 0, false},
                       {"FUNCTION", "", Unit::text, 8, true, false},
                   });
}

bool CudaMemcpy::tick(Output& output)
{
    // Before the first look at the targets ends, a process may have called without being seen.
    if (!skeleton_->bss->traced_since)
        skeleton_->bss->traced_since = clock_ns(CLOCK_BOOTTIME);
    return CallTool::tick(output);
}

std::vector<const char*> CudaMemcpy::tables_of(std::span<const ImageId> gone)
{
    std::vector<const char*> tables = CallTool::tables_of(gone);
    tables.insert(tables.end(), {"address_spaces", "allocations", "physical_memory", "ranges"});
    return tables;
}

void CudaMemcpy::print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds)
{
    CopyGroups groups(settings_, processes());
    for (const CallDelta& delta : calls)
        groups.add(delta);
    const Context context{{options_, settings_, processes(), seconds, probes()}};
    if (settings_.histogram())
        print_histograms(output, groups, context, wall_ns);
    else
        print_groups(output, groups, context, wall_ns,
                     [this](const CopyKey& key, const CopyGroup& group) { return row_frames(key, group.who); });
}

void CudaMemcpy::print_event(Output& output, const call_event& event)
{
    const copy_form& form = event.key.copy;
    const bool from = form.direction != DIRECTION_SET && form.direction != DIRECTION_PREFETCH;
    auto memory = [](int kind) { return Cell(std::string(memory_name(static_cast<uint8_t>(kind)))); };
    lines_->print(output, event,
                  {std::string(direction_name(form.direction)),
                   std::string(event.key.flags & CALL_ASYNCHRONOUS ? "async" : "sync"),
                   event.copy.sized ? Cell(uint64_t{event.copy.bytes}) : Cell(),
                   from ? memory(form.memory >> 4) : Cell(), memory(form.memory & 15),
                   from ? Cell(uint64_t{event.copy.source}) : Cell(), uint64_t{event.copy.destination}},
                  {uint64_t{event.copy.copies}, function_name(probes(), event.key.function)}, event_frames(event));
}

} // namespace
} // namespace gpusnoop::cudamemcpy

int main(int argc, char** argv)
{
    gpusnoop::cudamemcpy::CudaMemcpy tool;
    return gpusnoop::run_tool(argc, argv, tool);
}
