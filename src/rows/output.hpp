// SPDX-License-Identifier: Apache-2.0
// Interface of outputs. stdout carries data only; the run ends quietly if its reader closes it.
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

// Identity of a run in its JSON lines, so that lines of several runs and machines can be in one file.
struct RunIdentity {
    std::string run; // unique among all runs on all machines
    std::string host;
    std::string boot_id; // monotonic and boot-time clocks are comparable only within one boot
    std::string command; // command line of the tool; on the first line only
};

// Identity of this process; the same at each call.
RunIdentity this_run();

// A kind of data missing from the results, and its count.
struct Loss {
    std::string_view key;  // JSON key, "events_lost"
    std::string_view text; // "events lost (ring buffer full; enlarge it with --ring-mb)"
    uint64_t count = 0;
};

// Thrown if the reader of stdout has closed it.
struct OutputClosed {};

// Thrown if the run is over and the reader of stdout does not read.
class OutputStalled : public Error {
public:
    using Error::Error;
};

// Lines below a row or an event, in JSON a separate list. Usually the frames of a user stack, innermost first.
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

// An output ignores data that its format cannot show; only rows, losses and flush() are mandatory.
class Output {
public:
    virtual ~Output() = default;

    // Called once, first. floor_ns: shortest duration that can be measured (calibrate.hpp); nullopt: none are measured.
    virtual void start(std::string_view tool, std::string_view version, std::optional<uint64_t> floor_ns);
    // Called once, after start(): "Tracing ... Hit Ctrl-C to end." Only for interactive users.
    virtual void banner(std::string_view text);
    // Called once the probes are attached, and again when more are. remarks: programs that the kernel refused, as
    // sentences.
    virtual void attached(uint64_t functions, uint64_t files, std::string_view tier, ExtraLines remarks);

    // Begins a table; its rows follow. interval_ns: time covered; wall_ns: time of day at its end.
    virtual void begin_table(std::span<const Column> columns, uint64_t wall_ns, uint64_t interval_ns);
    virtual void row(std::span<const Column> columns, const Row& row, ExtraLines below) = 0;

    // One event line. The header is written before the first one.
    virtual void event(std::span<const Column> columns, const Row& row, ExtraLines below);

    // Describes a process that lines or rows refer to; only in data formats.
    virtual void process(std::span<const Column> columns, const Row& row);

    // One histogram. title: its label ("pid = 123", or empty); fields: the label in JSON.
    virtual void histogram(std::string_view title, std::string_view unit, const Histogram& histogram,
                           std::span<const std::pair<std::string_view, Cell>> fields, uint64_t wall_ns,
                           const BucketNotes& notes = {});

    // Ends a report. nothing: returns the sentence to print if the report was empty; data formats do not call it.
    using Sentence = std::function<std::string()>;
    virtual void end_report(const Sentence& nothing, uint64_t wall_ns);

    virtual void lost(std::span<const Loss> losses) = 0; // skips losses with count 0
    virtual void end(uint64_t duration_ns);

    // Writes everything so far to stdout. Called before the loop sleeps. Throws what OutputBuffer::flush() throws.
    virtual void flush() = 0;

    // Called while stdout is blocked, with the time since it last accepted data. Returns true to stop waiting. Without
    // it, the output waits forever.
    using GivesUp = std::function<bool(std::chrono::nanoseconds stalled)>;
    virtual void give_up_when(GivesUp gives_up) { gives_up_ = std::move(gives_up); }

    // The output for text that only people read, and the one for data that only programs read: this output, or one of
    // several combined ones. Null: none.
    virtual Output* for_people() { return this; }
    virtual Output* for_programs() { return nullptr; }
    // The output for a row, by its number in the table. most: rows shown to people (0: all). Null: none.
    Output* place_of_row(size_t number, size_t most)
    {
        return !most || number < most || !for_people() ? this : for_programs();
    }

protected:
    GivesUp gives_up_;
};

// Prints nothing: for a tool that draws a screen.
std::unique_ptr<Output> make_silent_output();
// timestamps: a TIME line or column (-T).
std::unique_ptr<Output> make_text_output(bool timestamps);
// run: identity, included in each line.
std::unique_ptr<Output> make_json_output(std::optional<RunIdentity> run = {});
// For tools with a single kind of row. The header has the columns' keys.
std::unique_ptr<Output> make_csv_output();

} // namespace gpusnoop
