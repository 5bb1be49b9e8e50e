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
    std::string measure;              // name of the measure of histograms; empty: no histograms
    bool events = false;              // a line per gap
    NameOptions names;                // form of the names of launches around gaps
    bool why = false;                 // a sentence per process
    bool stacks = false;              // stacks at which threads block
    bool tcp = false;                 // TCP connections by peer
    bool files = false;               // files that threads wait for
    bool interrupts = false;          // hardirq and softirq time are separate parts
    bool cheap = false;               // context switches are not traced, so the reasons for blocking are not known
    std::optional<uint64_t> least_ns; // shorter gaps are omitted

    bool histogram() const { return !measure.empty(); }
};

struct Context {
    const Options& options;
    const Settings& settings;
    Processes& processes;
    double seconds = 0; // covered by the table
    const CircumstancesOf& around;
    std::bitset<TIME_PARTS> parts{}; // parts that have a column

    const WhoView& who() const { return settings.view.who; }
};

// The data of a gap's line.
struct GapLine {
    const gap_record& call;
    const GapFiles& files;
    const GapLaunches& launches;
    uint64_t since_ns = 0; // since the first line
    uint64_t wall_ns = 0;
};

// Fields of the lines of -e.
std::span<const Field<Context, GapLine>> line_fields();

// The text below a gap's line that names the launches before and after the gap. In JSON, they are keys of the line.
std::string launches_line(const GapLaunches& launches, const NameOptions& names);

// The lines below that text: which thread woke the blocked one (the waker), and what the waker did before.
std::vector<std::string> waker_lines(const gap_record& gap, const GapFiles& files);

// Prints a histogram of the gaps of each group.
void print_histograms(Output& output, const std::map<GapKey, GapGroup>& groups, const Context& context,
                      uint64_t wall_ns);

// Prints the groups as one table, in the order of Settings::sort.
void print_groups(Output& output, const std::map<TimeKey, TimeGroup>& groups, const Context& context, uint64_t wall_ns);

// Fields of the tables of -U, --files and (below) --tcp.
std::span<const Field<Context, BlockKey, BlockGroup>> stack_fields();
std::span<const Field<Context, FileKey, FileGroup>> file_fields();

// Key of a row of TCP connections.
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

// Throws UsageError if --columns or -s names an unknown column, and Answer for --columns help.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::cudagap
