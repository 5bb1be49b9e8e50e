// SPDX-License-Identifier: Apache-2.0
// cudagap's settings and columns.
#pragma once

#include "names/kernel_text.hpp"
#include "rows/call_events.hpp"
#include "rows/report.hpp"
#include "rows/thread_times.hpp"
#include "tools/cudagap/blocks.hpp"
#include "tools/cudagap/circumstances.hpp"
#include "tools/cudagap/gaps.hpp"
#include "tools/cudagap/peers.hpp"

#include <bitset>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop::cudagap {

struct Settings {
    CallView view;
    std::optional<std::string> by;
    std::string sort = "wall_ns";     // JSON key or header of a column
    std::string measure;              // measure that histograms show; empty: no histograms
    bool events = false;              // print a line per gap
    NameOptions names;                // how to print the names of the launches before and after a gap
    bool why = false;                 // print a sentence per process
    bool stacks = false;              // show stacks at which threads block
    bool tcp = false;                 // show TCP connections by peer
    bool files = false;               // show files that threads wait for
    bool interrupts = false;          // report hardirq and softirq time separately
    bool cheap = false;               // do not trace context switches; reasons for blocking are then unknown
    std::optional<uint64_t> least_ns; // shorter gaps are omitted

    bool histogram() const { return !measure.empty(); }
};

struct Context {
    const Options& options;
    const Settings& settings;
    Processes& processes;
    double seconds = 0; // length of the interval that the table covers
    const CircumstancesOf& around;
    std::bitset<TIME_PARTS> parts{}; // parts of time that have a column

    const WhoView& who() const { return settings.view.who; }
};

// Data for the line about a gap.
struct GapLine {
    const gap_record& call;
    const GapFiles& files;
    const GapLaunches& launches;
    uint64_t since_ns = 0; // time since the first line
    uint64_t wall_ns = 0;
};

// Fields of the lines that -e prints.
std::span<const Field<Context, GapLine>> line_fields();

// Text below a gap's line, which names the launches before and after the gap. In JSON, the line itself has keys for
// these launches.
std::string launches_line(const GapLaunches& launches, const NameOptions& names);

// Lines below the text of launches_line(): which thread woke the blocked thread (the waker), and what the waker did
// before that.
std::vector<std::string> waker_lines(const gap_record& gap, const GapFiles& files);

// Prints a histogram of the gaps of each group.
void print_histograms(Output& output, const std::map<GapKey, GapGroup>& groups, const Context& context,
                      uint64_t wall_ns);

// Prints the groups as one table, in the order of Settings::sort.
void print_groups(Output& output, const std::map<TimeKey, TimeGroup>& groups, const Context& context, uint64_t wall_ns);

// Fields of the tables that -U and --files print.
std::span<const Field<Context, BlockKey, BlockGroup>> stack_fields();
std::span<const Field<Context, FileKey, FileGroup>> file_fields();

// Key of a row that sums TCP connections.
struct PeerKey {
    WhoKey who;
    std::string address;
    auto operator<=>(const PeerKey&) const = default;
};

struct PeerGroup {
    WhoSeen who;
    Peer peer;
    bool all = true; // false: some connections were not scanned
};

std::map<PeerKey, PeerGroup> group_peers(const std::vector<ThreadTime>& times, const PeersOf& peers,
                                         const CallView& view, Processes& processes);
std::span<const Field<Context, PeerKey, PeerGroup>> peer_fields();

// Throws UsageError if --columns or -s names an unknown column. For --columns help, throws Answer with the list of
// columns.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::cudagap
