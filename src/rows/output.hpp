// SPDX-License-Identifier: Apache-2.0
// Interface of outputs. Only results are written to stdout. If the reader of stdout closes it, the run ends without a
// message.
#pragma once

#include "base/error.hpp"
#include "names/frames.hpp"
#include "rows/histogram.hpp"
#include "rows/table.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

// Identity of a run. It is part of each JSON line, so that one file can contain lines of several runs and machines.
struct RunIdentity {
    std::string run; // unique among all runs on all machines
    std::string host;
    std::string boot_id; // monotonic and boot-time clocks are comparable only within one boot
    std::string command; // command line of the tool; written only to the first JSON line
};

// Returns the identity of this run, which is the same at each call.
RunIdentity this_run();

// Data of one kind that is missing from the results.
struct Loss {
    std::string_view key;  // JSON key, such as "events_lost"
    std::string_view text; // such as "events lost (ring buffer full; enlarge it with --ring-mb)"
    uint64_t count = 0;
};

// Thrown if the reader of stdout has closed it.
struct OutputClosed {};

// Thrown if the run is over and the reader of stdout has stopped reading.
class OutputStalled : public Error {
public:
    using Error::Error;
};

// Lines printed below a row or event line; in JSON, a list with the given key. Usually the frames of a user stack,
// innermost first.
struct ExtraLines {
    std::span<const std::string> lines;
    std::string_view key = "frames";
    const ExtraLines* then = nullptr; // more lines, with another key
    std::span<const CodeFrame> parts; // structured form of the lines, if they are frames

    ExtraLines() = default;
    ExtraLines(std::span<const std::string> of) : lines(of) {}         // NOLINT: implicit, as callers pass lines
    ExtraLines(const std::vector<std::string>& of) : lines(of) {}      // NOLINT
    ExtraLines(const Frames& of) : lines(of.lines), parts(of.parts) {} // NOLINT
    ExtraLines(std::string_view name, const std::vector<std::string>& of) : lines(of), key(name) {}
};

// Destination of a run's results. An output ignores data that its format cannot represent; only row(), lost() and
// flush() must be implemented.
class Output {
public:
    virtual ~Output() = default;

    // Called once, before all others. floor_ns: shortest duration that can be measured (calibrate.hpp); nullopt if the
    // run measures no durations.
    virtual void start(std::string_view tool, std::string_view version, std::optional<uint64_t> floor_ns);
    // Called once after start() with "Tracing ... Hit Ctrl-C to end.", for interactive users.
    virtual void banner(std::string_view text);
    // Called when the probes have been attached, and again each time more are attached. remarks: sentences about BPF
    // programs that the kernel refused.
    virtual void attached(uint64_t functions, uint64_t files, std::string_view tier, ExtraLines remarks);

    // Begins a table; row() is then called for each row. interval_ns: length of the covered interval; wall_ns: time of
    // day at its end.
    virtual void begin_table(std::span<const Column> columns, uint64_t wall_ns, uint64_t interval_ns);
    virtual void row(std::span<const Column> columns, const Row& row, ExtraLines below) = 0;

    // Prints an event line, preceded by the header if it is the first one.
    virtual void event(std::span<const Column> columns, const Row& row, ExtraLines below);

    // Describes a process that event lines or rows refer to. Only JSON outputs print it.
    virtual void process(std::span<const Column> columns, const Row& row);

    // Prints a histogram. title: its label, such as "pid = 123", or empty; fields: the same label as JSON fields.
    virtual void histogram(std::string_view title, std::string_view unit, const Histogram& histogram,
                           std::span<const std::pair<std::string_view, Cell>> fields, uint64_t wall_ns,
                           const BucketNotes& notes = {});

    // Ends a report. nothing: returns the sentence that text output prints if the report has no rows. Data formats
    // print no such sentence, so they do not call nothing().
    using Sentence = std::function<std::string()>;
    virtual void end_report(const Sentence& nothing, uint64_t wall_ns);

    virtual void lost(std::span<const Loss> losses) = 0; // skips losses with count 0
    virtual void end(uint64_t duration_ns);

    // Writes all buffered data to stdout. Called before the event loop sleeps. Throws the same errors as
    // OutputBuffer::flush().
    virtual void flush() = 0;

    // Sets a function to call while stdout is blocked. Its argument is the time since stdout last accepted data, and it
    // returns true to stop waiting. If no function is set, the output waits forever.
    using GivesUp = std::function<bool(std::chrono::nanoseconds stalled)>;
    virtual void give_up_when(GivesUp gives_up) { gives_up_ = std::move(gives_up); }

    // for_people() returns the output for people (text), and for_programs() the output for programs (such as JSON);
    // null if there is none. An output that does not combine two outputs returns itself from one of these functions.
    virtual Output* for_people() { return this; }
    virtual Output* for_programs() { return nullptr; }
    // Returns the output that writes the table's row with this index; null if none does. most: maximum number of rows
    // shown to people; 0: all.
    Output* place_of_row(size_t number, size_t most)
    {
        return !most || number < most || !for_people() ? this : for_programs();
    }

protected:
    GivesUp gives_up_;
};

// An output that prints nothing, for a tool that draws a screen.
std::unique_ptr<Output> make_silent_output();
// timestamps: print the time as a line or column (-T).
std::unique_ptr<Output> make_text_output(bool timestamps);
// run: identity to include in each line.
std::unique_ptr<Output> make_json_output(std::optional<RunIdentity> run = {});
// For tools with a single kind of row. The header line contains the columns' JSON keys.
std::unique_ptr<Output> make_csv_output();

} // namespace gpusnoop
