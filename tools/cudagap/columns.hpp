// SPDX-License-Identifier: Apache-2.0
// What a run of cudagap was asked for, and the columns that show it.
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
    std::string measure;              // of the histogram; empty: none
    bool events = false;              // a line per gap
    NameOptions names;                // of what these are between
    bool why = false;                 // a sentence per process
    bool stacks = false;              // where threads block
    bool tcp = false;                 // connections, by their peers
    bool files = false;               // which ones threads wait for
    bool interrupts = false;          // are parts of their own
    bool cheap = false;               // switches are not followed: there are no reasons
    std::optional<uint64_t> least_ns; // shorter gaps are left out

    bool histogram() const { return !measure.empty(); }
};

struct Context {
    const Options& options;
    const Settings& settings;
    Processes& processes;
    double seconds = 0;              // that the table covers
    const CircumstancesOf& around;   // of the processes
    std::bitset<TIME_PARTS> parts{}; // that the table has columns of

    const WhoView& who() const { return settings.view.who; }
};

// A gap, as its line shows it.
struct GapLine {
    const gap_record& call;
    const GapFiles& files;
    const GapLaunches& launches;
    uint64_t since_ns = 0; // since the first line
    uint64_t wall_ns = 0;
};

// Of a line for each gap (-e).
std::span<const Field<Context, GapLine>> line_fields();

// Below the line: what was launched before and after it. In JSON that has keys of its own.
std::string launches_line(const GapLaunches& launches, const NameOptions& names);

// Who woke its thread, and what kept that one: below that.
std::vector<std::string> waker_lines(const gap_record& gap, const GapFiles& files);

// Prints a histogram of the gaps of each group.
void print_histograms(Output& output, const std::map<GapKey, GapGroup>& groups, const Context& context,
                      uint64_t wall_ns);

// Prints the groups as one table, in the order asked for.
void print_groups(Output& output, const std::map<TimeKey, TimeGroup>& groups, const Context& context, uint64_t wall_ns);

// Of the tables of blocks by stack (-U), of files (--files) and of connections by peer (--tcp).
std::span<const Field<Context, BlockKey, BlockGroup>> stack_fields();
std::span<const Field<Context, FileKey, FileGroup>> file_fields();

// TCP connections of whoever has the row to one address.
struct PeerKey {
    WhoKey who;
    std::string address;
    auto operator<=>(const PeerKey&) const = default;
};

struct PeerGroup {
    WhoSeen who;
    Peer peer;
    bool all = true; // or these are some of them
};

std::map<PeerKey, PeerGroup> group_peers(const std::vector<ThreadTime>& times, const PeersOf& peers,
                                         const CallView& view, Processes& processes);
std::span<const Field<Context, PeerKey, PeerGroup>> peer_fields();

// Throws UsageError where --columns or -s names no column, and Answer where --columns asks for their names.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::cudagap
