// SPDX-License-Identifier: Apache-2.0
// What a run of ncclwait was asked for, and the columns that show it.
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
    bool events = false;          // a line per collective
    bool failed = false;          // only calls that failed
    std::string measure;          // of the histogram; empty: none
    Measure histogram_of = Measure::none;
    uint64_t stalled_ns = 10'000'000'000; // then it is said who is missing
    std::optional<uint32_t> ras_port;     // of NCCL's own service, where it is asked

    bool histogram() const { return histogram_of != Measure::none; }
};

struct CollectiveKey {
    WhoKey who;
    uint64_t communicator = 0;
    std::optional<unsigned> rank;
    std::string_view operation;
    std::optional<uint64_t> size; // a power of two
    std::optional<uint64_t> stream;
    int result = 0; // of calls that failed, where those are shown
    auto operator<=>(const CollectiveKey&) const = default;
};

struct CollectiveGroup {
    struct Late {
        uint64_t calls = 0, ns = 0;
    };
    WhoSeen who;
    std::set<uint64_t> communicators;
    std::optional<uint64_t> hash; // of the only one
    std::optional<unsigned> ranks, here, device;
    std::set<Joined> joined;
    std::set<std::string_view> operations;
    std::map<unsigned, Late> late; // by rank
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
    double seconds = 0; // that the table covers
    const CallerCpu& cpu;
    bool errors = false, unjoined = false; // there are some in it

    const WhoView& who() const { return settings.view.who; }
    // Not all of a communicator's ranks are in a row.
    bool of_ranks() const
    {
        return settings.rank || settings.stream || who().pid || who().comm || who().thread || who().by_owner();
    }
};

// Only with -x, whose rows are of failed calls.
template<class C, Shown where>
Shown where_failed(const C& c)
{
    return c.options.failed_only ? where : Shown::no;
}

inline constexpr std::string_view about_communicator =
    "The hash of the communicator, 16 hexadecimal digits; a string in JSON. Before NCCL 2.18, the first 8 bytes of its "
    "id.";
inline constexpr std::string_view about_ranks =
    "Ranks seen on this machine, of all that it has. If they are fewer, the one that all wait for may be on another "
    "machine.";

// Prints the groups as one table, in the order asked for. frames: what stands below a row.
void print_groups(Output& output, const CollectiveGroups& groups, const Context& context, uint64_t wall_ns,
                  const std::function<Frames(const CollectiveGroup&)>& frames);

// Prints a histogram of each group.
void print_histograms(Output& output, const CollectiveGroups& groups, const Context& context, uint64_t wall_ns);

// A rank's part of a collective; in text, the one that came last stands for all.
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
    const Collectives::Came* came = nullptr;
    uint64_t since_ns = 0; // since the first line
    uint64_t wall_ns = 0;
};
using RankLines = CallEvents<RankLine, Context>;
std::span<const Field<Context, RankLine>> line_fields();
// frames: what stands below a line of that rank.
void print_line(Output& output, RankLines& lines, const Collectives::Line& line, const Context& context,
                const std::function<Frames(const Collectives::Came&)>& frames);

// below: what its ranks do, a line each.
std::vector<Column> verdict_columns();
void print_verdict(Output& output, const CollectiveVerdict& verdict, const Context& context,
                   const std::vector<std::string>& below);

// Throws UsageError where --columns or -s names no column, and Answer where --columns asks for their names.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::ncclwait
