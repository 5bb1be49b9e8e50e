// SPDX-License-Identifier: Apache-2.0
#include "rows/who.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace gpusnoop {

namespace {

constexpr std::pair<std::string_view, bool WhoView::*> dimensions[] = {
    {"pid", &WhoView::pid},       {"comm", &WhoView::comm},
    {"thread", &WhoView::thread}, {"container", &WhoView::container},
    {"pod", &WhoView::pod},       {"namespace", &WhoView::pod_namespace},
    {"cgroup", &WhoView::cgroup},
};

// Returns the row's process if there is only one, else nullopt. Each exec adds an image; returns the latest.
std::optional<ImageId> only_process(const WhoSeen& seen)
{
    if (seen.images.empty() || seen.images.begin()->pid != seen.images.rbegin()->pid)
        return std::nullopt;
    return *seen.images.rbegin();
}

// Shortens ids to 12 digits, as docker and crictl do. Truncates a long path at its start, because cgroup paths differ
// at the end.
std::string shorten_path(std::string_view path)
{
    constexpr size_t width = 60, id_digits = 32, id_shown = 12;
    std::string shorter;
    for (size_t at = 0; at < path.size();) {
        const size_t end = std::min(path.find_first_not_of("0123456789abcdef", at), path.size());
        shorter.append(path.substr(at, end - at < id_digits ? end - at : id_shown));
        if (end < path.size())
            shorter += path[end];
        at = end + 1;
    }
    if (shorter.size() <= width)
        return shorter;
    size_t from = shorter.size() - (width - 3);
    while (from < shorter.size() && (static_cast<unsigned char>(shorter[from]) & 0xc0) == 0x80)
        from++; // do not cut within a UTF-8 character
    return "..." + shorter.substr(from);
}

} // namespace

bool WhoView::parse(std::string_view name)
{
    const auto* found = std::ranges::find(dimensions, name, &std::pair<std::string_view, bool WhoView::*>::first);
    if (found == std::end(dimensions))
        return false;
    this->*found->second = true;
    pid |= thread;
    return true;
}

void WhoKey::set_process(const ImageId& image, Processes& processes)
{
    pid = image.pid;
    start_ns = processes.info(image).start_ns;
}

WhoKey who_key(const WhoView& view, Processes& processes, const ImageId& image, uint32_t tid, const cgroups& ids)
{
    WhoKey key;
    if (view.pid)
        key.set_process(image, processes);
    if (view.thread)
        key.tid = tid;
    if (view.comm)
        key.comm = processes.info(image).comm;
    if (!view.by_owner())
        return key;
    const Owner& owner = processes.owner(image, ids);
    if (view.container)
        key.container = owner.container_key();
    if (view.pod)
        key.pod = owner.pod_uid().empty() ? owner.pod_name() : owner.pod_uid();
    if (view.pod_namespace)
        key.pod_namespace = owner.names.pod_namespace;
    if (view.cgroup)
        key.cgroup = owner.cgroup;
    return key;
}

Cell pid_cell(const WhoSeen& seen)
{
    const auto process = only_process(seen);
    return process ? Cell(uint64_t{process->pid}) : Cell();
}

Cell ns_pid_cell(const WhoSeen& seen, Processes& processes)
{
    const auto process = only_process(seen);
    const uint64_t pid = process ? processes.info(*process).ns_pid : 0;
    return pid ? Cell(pid) : Cell();
}

Cell command_line_cell(const WhoSeen& seen, Processes& processes)
{
    const auto process = only_process(seen);
    return process ? text_if_any(processes.command_line(*process)) : Cell();
}

Cell sampled_cell(const WhoSeen& seen, const Processes& processes)
{
    const std::optional<Sampled> sampled = processes.sampled(seen.images);
    return sampled ? Cell(sampled->percent) : Cell();
}

Cell sampled_error_cell(const WhoSeen& seen, const Processes& processes)
{
    const std::optional<Sampled> sampled = processes.sampled(seen.images);
    return sampled && sampled->error ? Cell(*sampled->error) : Cell();
}

Cell start_cell(const WhoSeen& seen, Processes& processes)
{
    const auto process = only_process(seen);
    const uint64_t start = process ? processes.info(*process).start_ns : 0;
    return start ? Cell(start) : Cell();
}

Cell comm_cell(const WhoKey& key, const WhoSeen& seen, Processes& processes)
{
    if (!key.comm.empty())
        return key.comm;
    const auto process = only_process(seen);
    return process ? text_if_any(processes.info(*process).comm) : Cell();
}

Cell thread_comm_cell(const WhoKey& key, const WhoSeen& seen, Processes& processes)
{
    const auto process = only_process(seen);
    return process && key.tid ? text_if_any(processes.thread_name(*process, key.tid)) : Cell();
}

Cell owner_cell(const Owner& owner, OwnerPart part)
{
    switch (part) {
    case OwnerPart::text:
        return text_if_any(owner.text());
    case OwnerPart::container_text:
        return owner.container() ? Cell(owner.text()) : Cell();
    case OwnerPart::pod_text:
        return text_if_any(owner.pod_name());
    case OwnerPart::cgroup_text:
        return owner.cgroup.empty() ? Cell() : Cell(shorten_path(owner.cgroup));
    case OwnerPart::container:
        return text_if_any(owner.names.container);
    case OwnerPart::container_id:
        return text_if_any(owner.where.container_id);
    case OwnerPart::runtime:
        return text_if_any(owner.runtime());
    case OwnerPart::pod:
        return text_if_any(owner.names.pod);
    case OwnerPart::pod_namespace:
        return text_if_any(owner.names.pod_namespace);
    case OwnerPart::pod_uid:
        return text_if_any(owner.pod_uid());
    case OwnerPart::cgroup:
        return text_if_any(owner.cgroup);
    case OwnerPart::unit:
        return text_if_any(owner.where.unit);
    case OwnerPart::slurm_job:
        return text_if_any(owner.where.slurm_job);
    case OwnerPart::slurm_step:
        return text_if_any(owner.where.slurm_step);
    case OwnerPart::uid:
        return cell_if(owner.where.uid);
    }
    return {};
}

Cell owner_cell(const WhoSeen& seen, OwnerPart part)
{
    Cell common;
    for (const Owner* owner : seen.owners) {
        Cell cell = owner_cell(*owner, part);
        if (owner != *seen.owners.begin() && cell != common)
            return {};
        common = std::move(cell);
    }
    return common;
}

namespace {

constexpr uint64_t refill_after = 4096; // number of lines after which the cells are filled again, because names of
                                        // owners may have become known

} // namespace

void EventWho::add_columns(std::vector<Column>& columns, bool in_text)
{
    const auto add = [&](Column column, std::string_view about) {
        column.about = about;
        columns.push_back(column);
    };
    add({"NSPID", "ns_pid", Unit::count, 7, in_text, true}, about_ns_pid);
    add({"OWNER", "", Unit::text, 40, in_text, false}, about_owner);
    for (const OwnerKey& each : owner_keys)
        add({"", each.key, each.unit, 0, false}, &each == owner_keys ? about_owner_keys : "");
}

size_t EventWho::fill(Row& row, size_t at, const ImageId& image, const cgroups& ids)
{
    const size_t end = at + 2 + std::size(owner_keys);
    if (image_ == image && ids_.v2 == ids.v2 && ids_.v1 == ids.v1 && ++filled_ < refill_after)
        return end;
    image_ = image;
    ids_ = ids;
    filled_ = 0;
    const uint64_t ns_pid = processes_.info(image).ns_pid;
    const Owner& owner = processes_.owner(image, ids);
    row[at++] = ns_pid ? Cell(ns_pid) : Cell();
    row[at++] = owner_cell(owner, OwnerPart::text);
    for (const OwnerKey& each : owner_keys)
        row[at++] = owner_cell(owner, each.part);
    return end;
}

namespace {

using FirstField = ProcessField<ProcessLine>;

template<OwnerPart part>
Cell owner_value(const ProcessLine& line, const AnyRun&)
{
    return line.owner ? owner_cell(*line.owner, part) : Cell();
}

template<size_t... I>
std::vector<FirstField> first_fields(std::index_sequence<I...>)
{
    return {
        {{"TIME", "time", Unit::time, 8},
         in_any_run,
         [](const ProcessLine& l, const AnyRun&) { return Cell(l.wall_ns); },
         "Time of day at which the event was detected."},
        {{"PID", "pid", Unit::count, 7},
         in_any_run,
         [](const ProcessLine& l, const AnyRun&) { return l.pid; },
         about_pid},
        {{"COMM", "comm", Unit::text, 15},
         in_any_run,
         [](const ProcessLine& l, const AnyRun&) { return l.comm; },
         "Name of the process."},
        {{"OWNER", "", Unit::text, 40}, in_any_run, owner_value<OwnerPart::text>, about_owner},
        {{"", owner_keys[I].key, owner_keys[I].unit},
         in_any_run,
         owner_value<owner_keys[I].part>,
         I ? "" : about_owner_keys}...,
    };
}

} // namespace

ProcessLine::ProcessLine(const ImageId& image, Processes& processes, uint64_t time_ns)
    : wall_ns(time_ns), pid(uint64_t{image.pid}), comm(processes.info(image).comm), owner(&processes.owner(image, {}))
{}

ProcessLine::ProcessLine(Cell its_pid, Cell its_comm, uint64_t time_ns)
    : wall_ns(time_ns), pid(std::move(its_pid)), comm(std::move(its_comm))
{}

std::span<const FirstField> first_process_fields()
{
    static const std::vector<FirstField> fields = first_fields(std::make_index_sequence<std::size(owner_keys)>());
    return fields;
}

namespace {

constexpr uint64_t again_after_ns = 60'000'000'000;
constexpr size_t reported_max = 65'536; // maximum size of reported_ns_; beyond it, reported_ns_ is cleared, so all
                                        // processes are reported again

std::vector<Column> columns_of_process()
{
    std::vector<Column> all{{"", "pid", Unit::count},
                            {"", "ns_pid", Unit::count},
                            {"", "process_start_ns", Unit::count},
                            {"", "comm", Unit::text},
                            {"", "command_line", Unit::text}};
    for (const OwnerKey& each : owner_keys)
        all.push_back({"", each.key, each.unit});
    return all;
}

} // namespace

void ReportedProcesses::report(Output& output, const ImageId& image, const cgroups& ids, uint64_t time_ns)
{
    const auto [last, is_new] = reported_ns_.try_emplace(image, time_ns);
    if (!is_new && time_ns < last->second + again_after_ns)
        return;
    last->second = time_ns;
    if (reported_ns_.size() > reported_max)
        reported_ns_.clear();
    static const std::vector<Column> columns = columns_of_process();
    const Owner& owner = processes_.owner(image, ids);
    WhoSeen seen;
    seen.add(image, owner);
    Row row{pid_cell(seen), ns_pid_cell(seen, processes_), start_cell(seen, processes_),
            comm_cell({}, seen, processes_), command_line_cell(seen, processes_)};
    for (const OwnerKey& each : owner_keys)
        row.push_back(owner_cell(owner, each.part));
    output.process(columns, row);
}

} // namespace gpusnoop
