// SPDX-License-Identifier: Apache-2.0
// Whose calls a row counts: the part of a row that is the same in all tools. A tool's group key has a `WhoKey who`, its
// group a `WhoSeen who`, and its table begins with who_fields.
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

// What is told apart.
struct WhoView {
    bool pid = false;
    bool comm = false;
    bool thread = false; // of a process: pid, too
    bool container = false;
    bool pod = false;
    bool pod_namespace = false;
    bool cgroup = false;
    bool owner = false; // shown, not told apart (-X)

    static constexpr std::string_view names = "pid, comm, thread, container, pod, namespace, cgroup";
    bool parse(std::string_view name); // false where it is none of them

    // Rows depend on the cgroup that the call came from.
    bool by_owner() const { return container || pod || pod_namespace || cgroup; }
};

// What is not told apart is empty.
struct WhoKey {
    uint32_t pid = 0;
    uint64_t start_ns = 0;
    uint32_t tid = 0;
    std::string comm;
    std::string container;
    std::string pod; // its uid, or its name where there is no uid
    std::string pod_namespace;
    std::string cgroup;
    auto operator<=>(const WhoKey&) const = default;

    // To be told apart from its namesakes: a reused pid is another process.
    void set_process(const ImageId& image, Processes& processes);
};

WhoKey who_key(const WhoView& view, Processes& processes, const ImageId& image, uint32_t tid, const cgroups& ids);

// All whose calls are in the row.
struct WhoSeen {
    std::set<ImageId> images;
    std::set<const Owner*> owners;
    uint8_t vendors = 0; // bits: of the APIs that were called

    void add(const ImageId& image, const Owner& owner)
    {
        images.insert(image);
        owners.insert(&owner);
    }
};

// What there is one answer to for the whole row; an empty cell otherwise.
Cell pid_cell(const WhoSeen& seen);
Cell ns_pid_cell(const WhoSeen& seen, Processes& processes);
// Of the time that calls were counted in, and the error of what is told from it. Empty: all were.
Cell sampled_cell(const WhoSeen& seen, const Processes& processes);
Cell sampled_error_cell(const WhoSeen& seen, const Processes& processes);
Cell start_cell(const WhoSeen& seen, Processes& processes);
Cell command_line_cell(const WhoSeen& seen, Processes& processes);
Cell comm_cell(const WhoKey& key, const WhoSeen& seen, Processes& processes);
// Of rows by thread.
Cell thread_comm_cell(const WhoKey& key, const WhoSeen& seen, Processes& processes);

enum class OwnerPart : uint8_t {
    text,
    container_text,
    pod_text,
    cgroup_text, // cut from the left
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

// What is known of an owner, as JSON keys of every row and event.
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

// Sentences for the manual that several fields share.
inline constexpr std::string_view about_pid =
    "Process id, as the host numbers it. In JSON also in other views, if a row belongs to only one process.";
inline constexpr std::string_view about_ns_pid = "The same process's id in its own pid namespace; with `-X`.";
inline constexpr std::string_view about_tid = "Thread id.";
inline constexpr std::string_view about_owner =
    "Whose process it is, from the cgroup in which it made its first call: NAMESPACE/POD/CONTAINER, RUNTIME:CONTAINER, "
    "slurm:JOB.STEP, a systemd unit, or the cgroup itself. JOB is the SLUID of the job where Slurm names its cgroups "
    "by "
    "it (26.05 and newer), and the job id elsewhere. If a name is not on the host's disk, the first 8 digits of the "
    "pod's uid or 12 of the container's id take its place. CONTAINER is `-` for processes outside of containers.";

inline constexpr std::string_view about_owner_keys =
    "The same in full, in every view, if all processes of the row agree. Processes outside of containers have a "
    "systemd "
    "unit, a uid (from the user's slice) or a Slurm job instead. A container with a uid is that user's own (rootless), "
    "under a name that the user chose.";

Cell owner_cell(const Owner& owner, OwnerPart part);
Cell owner_cell(const WhoSeen& seen, OwnerPart part);

// The columns of an event line that say whose it is.
class EventWho {
public:
    explicit EventWho(Processes& processes) : processes_(processes) {}

    // in_text: the pid inside the container and the owner are columns of the text, too.
    static void add_columns(std::vector<Column>& columns, bool in_text);

    // Fills the cells from row[at] on and returns where they end. Cells of the line before are kept where it came from
    // the same place, so most events cost a comparison.
    size_t fill(Row& row, size_t at, const ImageId& image, const cgroups& ids);

private:
    Processes& processes_;
    std::optional<ImageId> image_;
    cgroups ids_{};
    uint64_t filled_ = 0;
};

// A line that is about a process, not a call of it: when, who, whose, and what a tool has to say.

// What each of them has. A tool's own has more.
struct ProcessLine {
    uint64_t wall_ns = 0;
    Cell pid;
    Cell comm;
    const Owner* owner = nullptr; // null: nothing was seen of the process

    ProcessLine(const ImageId& image, Processes& processes, uint64_t time_ns);
    // As somebody else has told it.
    ProcessLine(Cell its_pid, Cell its_comm, uint64_t time_ns);
};

// They show the same whatever is asked for.
struct AnyRun {};

template<class Line>
using ProcessField = Field<AnyRun, Line>;

constexpr Shown in_any_run(const AnyRun&)
{
    return Shown::both;
}

// Lines begin with these. The tool's come behind, in its order.
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

// Who the processes are that lines of JSON are about: one line for each of them says what would be long on each of
// theirs.
class ReportedProcesses {
public:
    explicit ReportedProcesses(Processes& processes) : processes_(processes) {}

    // Before a line about it. Once, and again a minute later (time_ns): of a recording, only the end may be left.
    void report(Output& output, const ImageId& image, const cgroups& ids, uint64_t time_ns);

private:
    Processes& processes_;
    std::map<ImageId, uint64_t> reported_ns_;
};

} // namespace gpusnoop
