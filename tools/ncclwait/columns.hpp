// SPDX-License-Identifier: Apache-2.0
// ncclwait's settings and columns.
#pragma once

#include "rows/call_events.hpp"
#include "rows/call_view.hpp"
#include "rows/report.hpp"
#include "tools/ncclwait/collective_verdicts.hpp"
#include "tools/ncclwait/collectives.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpusnoop::ncclwait {

enum class Measure : uint8_t { none, skew, size, enqueue };

struct Settings {
    CallView view;
    bool communicator = false;
    bool rank = false;
    bool op = false;
    bool size = false;
    bool stream = false;
    std::optional<std::string> by;
    std::string sort = "wait_ns"; // JSON key or header of a column
    bool events = false;          // print a line per collective
    bool failed = false;          // show only calls that failed
    std::string measure;          // measure that histograms show; empty: no histograms
    Measure histogram_of = Measure::none;
    uint64_t stalled_ns = 10'000'000'000; // minimum duration of a stall to report
    std::optional<uint32_t> ras_port;     // port of NCCL's RAS service; unset: not used

    bool histogram() const { return histogram_of != Measure::none; }
};

struct CollectiveKey {
    WhoKey who;
    uint64_t communicator = 0;
    std::optional<unsigned> rank;
    std::string_view operation;
    std::optional<uint64_t> size; // bytes per call, rounded down to a power of two
    std::optional<uint64_t> stream;
    int result = 0; // with -x: result of the failed calls
    auto operator<=>(const CollectiveKey&) const = default;
};

struct CollectiveGroup {
    struct Late {
        uint64_t calls = 0, ns = 0;
    };
    WhoSeen who;
    std::set<uint64_t> communicators;
    std::optional<uint64_t> hash; // set if there is only one communicator
    std::optional<unsigned> ranks, here, device;
    std::set<Joined> joined;
    std::set<std::string_view> operations;
    std::map<unsigned, Late> late; // by rank: number of calls in which the rank arrived last, and its total lateness
    std::set<Caller> callers;
    CollectiveSums sums;
};

using CollectiveGroups = std::map<CollectiveKey, CollectiveGroup>;
CollectiveGroups group_parts(const std::vector<Collectives::Part>& parts, const Settings& settings,
                             Processes& processes);

struct Context {
    const Options& options;
    const Settings& settings;
    Processes& processes;
    double seconds = 0; // length of the interval that the table covers
    const CallerCpu& cpu;
    bool errors = false, unjoined = false; // true if any row has errors; true if any row has unjoined calls

    const WhoView& who() const { return settings.view.who; }
    // True if a row may have only some of a communicator's ranks.
    bool of_ranks() const
    {
        return settings.rank || settings.stream || who().pid || who().comm || who().thread || who().by_owner();
    }
};

// Shows a column only with -x, whose rows count failed calls.
template<class C, Shown where>
Shown where_failed(const C& c)
{
    return c.options.failed_only ? where : Shown::no;
}

inline constexpr std::string_view about_communicator =
    "Hash of the communicator, 16 hexadecimal digits; a string in JSON. Before NCCL 2.18, the first 8 bytes of its id.";
inline constexpr std::string_view about_ranks = "Number of the communicator's ranks seen on this machine, and number "
                                                "of all its ranks. If some are not seen, the rank that the others wait "
                                                "for may be on another machine.";

// Prints the groups as one table, in the order of Settings::sort. frames: returns the stack to print below a row.
void print_groups(Output& output, const CollectiveGroups& groups, const Context& context, uint64_t wall_ns,
                  const std::function<Frames(const CollectiveGroup&)>& frames);

// Prints a histogram of each group.
void print_histograms(Output& output, const CollectiveGroups& groups, const Context& context, uint64_t wall_ns);

// A rank's arrival at a collective. Text output has one line per collective, about the last arrival. JSON output has
// one line per arrival.
struct RankCall {
    struct Key {
        ImageId image{};
        struct cgroups cgroups {};
    };
    Key key;
    uint64_t time_ns = 0;
    uint32_t tid = 0;
    char comm[16] = {};
};
struct RankLine {
    RankCall call;
    const Collectives::Line* line = nullptr;
    const Collectives::RankArrival* arrival = nullptr;
    uint64_t since_ns = 0; // time since the first line
    uint64_t wall_ns = 0;
};
using RankLines = CallEvents<RankLine, Context>;
std::span<const Field<Context, RankLine>> line_fields();
// frames: returns the stack to print below a line.
void print_line(Output& output, RankLines& lines, const Collectives::Line& line, const Context& context,
                const std::function<Frames(const Collectives::RankArrival&)>& frames);

std::vector<Column> verdict_columns();
// below: lines about the activity of ranks, to print below the verdict.
void print_verdict(Output& output, const CollectiveVerdict& verdict, const Context& context,
                   const std::vector<std::string>& below);

// Throws UsageError if --columns or -s names an unknown column. For --columns help, throws Answer with the list of
// columns.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::ncclwait
