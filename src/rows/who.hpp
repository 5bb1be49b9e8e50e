// SPDX-License-Identifier: Apache-2.0
// Owner of a row's calls: process, thread, container, pod, cgroup. Used by the tables of all tools: a tool's Key has a
// member `WhoKey who`, its Group a member `WhoSeen who`, and its table begins with who_fields.
#pragma once

#include "rows/field.hpp"
#include "rows/output.hpp"
#include "rows/table.hpp"
#include "who/processes.hpp"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// Dimensions of the calls' owner by which rows are grouped.
struct WhoView {
    bool pid = false;
    bool comm = false;
    bool thread = false; // implies pid
    bool container = false;
    bool pod = false;
    bool pod_namespace = false;
    bool cgroup = false;
    bool owner = false; // show the owner (-X), without grouping by it

    static constexpr std::string_view names = "pid, comm, thread, container, pod, namespace, cgroup";
    bool parse(std::string_view name); // returns false for an unknown name

    // True if rows are grouped by something that depends on the caller's cgroup.
    bool by_owner() const { return container || pod || pod_namespace || cgroup; }
};

// Key of a group; unused dimensions are empty.
struct WhoKey {
    uint32_t pid = 0;
    uint64_t start_ns = 0;
    uint32_t tid = 0;
    std::string comm;
    std::string container;
    std::string pod; // uid, or name if there is no uid
    std::string pod_namespace;
    std::string cgroup;
    auto operator<=>(const WhoKey&) const = default;

    // Sets pid and start_ns. The start time is needed because another process may reuse the pid.
    void set_process(const ImageId& image, Processes& processes);
};

WhoKey who_key(const WhoView& view, Processes& processes, const ImageId& image, uint32_t tid, const cgroups& ids);

// Processes and owners whose calls are counted in a row.
struct WhoSeen {
    std::set<ImageId> images;
    std::set<const Owner*> owners;
    uint8_t vendors = 0; // bit mask of the vendors whose APIs were called; see vendor_bit()

    void add(const ImageId& image, const Owner& owner)
    {
        images.insert(image);
        owners.insert(&owner);
    }
};

// These cells are empty if the row covers several processes with different values.
Cell pid_cell(const WhoSeen& seen);
Cell ns_pid_cell(const WhoSeen& seen, Processes& processes);
// sampled_cell() returns the percentage of CPU time during which calls were counted, and sampled_error_cell() the error
// of the estimates in percent. Both return an empty cell if calls were not sampled.
Cell sampled_cell(const WhoSeen& seen, const Processes& processes);
Cell sampled_error_cell(const WhoSeen& seen, const Processes& processes);
Cell start_cell(const WhoSeen& seen, Processes& processes);
Cell command_line_cell(const WhoSeen& seen, Processes& processes);
Cell comm_cell(const WhoKey& key, const WhoSeen& seen, Processes& processes);
// Name of the thread, for rows that are grouped by thread.
Cell thread_comm_cell(const WhoKey& key, const WhoSeen& seen, Processes& processes);

enum class OwnerPart : uint8_t {
    text,
    container_text,
    pod_text,
    cgroup_text, // path of the cgroup, shortened at its start
    container,
    container_id,
    runtime,
    pod,
    pod_namespace,
    pod_uid,
    cgroup,
    unit,
    slurm_job,
    slurm_step,
    uid,
};

// JSON keys that describe the owner in every row and event.
struct OwnerKey {
    std::string_view key;
    Unit unit;
    OwnerPart part;
};

inline constexpr OwnerKey owner_keys[] = {
    {"container", Unit::text, OwnerPart::container},
    {"container_id", Unit::text, OwnerPart::container_id},
    {"runtime", Unit::text, OwnerPart::runtime},
    {"pod", Unit::text, OwnerPart::pod},
    {"namespace", Unit::text, OwnerPart::pod_namespace},
    {"pod_uid", Unit::text, OwnerPart::pod_uid},
    {"unit", Unit::text, OwnerPart::unit},
    {"uid", Unit::count, OwnerPart::uid},
    {"slurm_job", Unit::text, OwnerPart::slurm_job},
    {"slurm_step", Unit::text, OwnerPart::slurm_step},
    {"cgroup", Unit::text, OwnerPart::cgroup},
};

// Descriptions for the manual that several fields share.
inline constexpr std::string_view about_pid =
    "Process id in the host's pid namespace. In JSON, every row that belongs to a single process has it.";
inline constexpr std::string_view about_ns_pid =
    "Id of the process in its own pid namespace, such as a container's; with `-X`.";
inline constexpr std::string_view about_tid = "Thread id.";
inline constexpr std::string_view about_owner =
    "Owner of the process, from the cgroup in which it made its first call: NAMESPACE/POD/CONTAINER, "
    "RUNTIME:CONTAINER, slurm:JOB.STEP, a systemd unit, or the cgroup itself. JOB is the job's SLUID if Slurm names "
    "cgroups by it (26.05 and newer), otherwise the job id. If the name of a pod or container cannot be found in the "
    "host's files, the first 8 digits of the pod's uid or the first 12 of the container's id replace it. CONTAINER is "
    "`-` for processes outside of containers.";

inline constexpr std::string_view about_owner_keys =
    "The parts of the owner, unabbreviated. A row has a part only if all processes of the row share it. Processes "
    "outside of containers have a systemd unit, a uid (from the user's slice) or a Slurm job instead. A container with "
    "a uid is rootless: it belongs to that user, who chose its name.";

Cell owner_cell(const Owner& owner, OwnerPart part);
Cell owner_cell(const WhoSeen& seen, OwnerPart part);

// Owner columns of an event line.
class EventWho {
public:
    explicit EventWho(Processes& processes) : processes_(processes) {}

    // in_text: text output also shows the owner, and the process id in its own pid namespace.
    static void add_columns(std::vector<Column>& columns, bool in_text);

    // Sets the cells from row[at] on, and returns the index past them. If process and cgroups are the same as in the
    // last call, keeps the row's cells, so most events cost only a comparison.
    size_t fill(Row& row, size_t at, const ImageId& image, const cgroups& ids);

private:
    Processes& processes_;
    std::optional<ImageId> image_;
    cgroups ids_{};
    uint64_t filled_ = 0;
};

// Base class of event lines that describe a process instead of a call. It contains time, process and owner. Tools
// derive their own line types from it.
struct ProcessLine {
    uint64_t wall_ns = 0;
    Cell pid;
    Cell comm;
    const Owner* owner = nullptr; // null: unknown

    ProcessLine(const ImageId& image, Processes& processes, uint64_t time_ns);
    // For a process that is not traced, but named in another source such as an Xid message.
    ProcessLine(Cell its_pid, Cell its_comm, uint64_t time_ns);
};

// Context for ProcessField. It is empty, because no option affects the columns of event lines about processes.
struct AnyRun {};

template<class Line>
using ProcessField = Field<AnyRun, Line>;

constexpr Shown in_any_run(const AnyRun&)
{
    return Shown::both;
}

// First columns of a line about a process; the tool's own columns follow.
std::span<const ProcessField<ProcessLine>> first_process_fields();

template<class Line>
std::vector<Column> process_line_columns(std::span<const ProcessField<Line>> own)
{
    std::vector<Column> all;
    auto add = [&](const auto& field) { all.push_back(shown_column(documented(field), field.shown({}))); };
    std::ranges::for_each(first_process_fields(), add);
    std::ranges::for_each(own, add);
    return all;
}

template<class Line>
void print_process_line(Output& output, std::span<const ProcessField<Line>> own, const Line& line, ExtraLines below)
{
    Row row;
    auto add = [&](const auto& field) { row.push_back(field.value(line, {})); };
    std::ranges::for_each(first_process_fields(), add);
    std::ranges::for_each(own, add);
    output.event(process_line_columns(own), row, below);
}

// Prints JSON lines that describe the processes of event lines, so that event lines need not repeat the description.
class ReportedProcesses {
public:
    explicit ReportedProcesses(Processes& processes) : processes_(processes) {}

    // Call before each event line of the process. Prints the description at the first call, and again when time_ns is a
    // minute later, because the user may keep only the end of a recording.
    void report(Output& output, const ImageId& image, const cgroups& ids, uint64_t time_ns);

private:
    Processes& processes_;
    std::map<ImageId, uint64_t> reported_ns_;
};

} // namespace gpusnoop
