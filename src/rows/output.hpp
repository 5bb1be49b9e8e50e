// SPDX-License-Identifier: Apache-2.0
// Where results go. stdout carries data only; a write that fails because the reader has gone ends the run quietly.
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

// Which run lines of JSON are of, so that those of several can lie in one file, and be told apart on another machine.
struct RunIdentity {
    std::string run; // the same for no other run of any machine
    std::string host;
    std::string boot_id; // of the kernel: clocks other than that of the day are comparable within it
    std::string command; // that the tool was started with; on the first line alone
};

// Of this process. Equal each time it is asked.
RunIdentity this_run();

// One thing that is missing from the results, and how many of it.
struct Loss {
    std::string_view key;  // JSON key, "events_lost"
    std::string_view text; // "events lost (ring buffer full; enlarge it with --ring-mb)"
    uint64_t count = 0;
};

// The reader of stdout has gone.
struct OutputClosed {};

// Nobody reads what stdout leads to, and the run is over.
class OutputStalled : public Error {
public:
    using Error::Error;
};

// Lines below a row or an event; in JSON a list of its own. Mostly the frames of a user stack, innermost first.
struct ExtraLines {
    std::span<const std::string> lines;
    std::string_view key = "frames";
    const ExtraLines* then = nullptr; // more, with another key
    std::span<const CodeFrame> parts; // of frames

    ExtraLines() = default;
    ExtraLines(std::span<const std::string> of) : lines(of) {}         // NOLINT: what there is below most rows
    ExtraLines(const std::vector<std::string>& of) : lines(of) {}      // NOLINT
    ExtraLines(const Frames& of) : lines(of.lines), parts(of.parts) {} // NOLINT
    ExtraLines(std::string_view name, const std::vector<std::string>& of) : lines(of), key(name) {}
};

// What a form of output has no place for, it leaves out: rows, losses and the end of a write have a place in each.
class Output {
public:
    virtual ~Output() = default;

    // Once, before anything else. floor_ns: the least that a duration can be (calibrate.hpp), where any are measured.
    virtual void start(std::string_view tool, std::string_view version, std::optional<uint64_t> floor_ns);
    // Once, after that: that it runs, and how it ends. For whoever sits there, not for whoever reads the data.
    virtual void banner(std::string_view text);
    // Once, when the probes are in, and again when there are more. remarks: what the kernel refused, in sentences.
    virtual void attached(uint64_t functions, uint64_t files, std::string_view tier, ExtraLines remarks);

    // A table: begin, rows. interval_ns is the time it covers, wall_ns the time of day it ends at.
    virtual void begin_table(std::span<const Column> columns, uint64_t wall_ns, uint64_t interval_ns);
    virtual void row(std::span<const Column> columns, const Row& row, ExtraLines below) = 0;

    // One event line. The header is written before the first one.
    virtual void event(std::span<const Column> columns, const Row& row, ExtraLines below);

    // Who a process is that lines or rows are about; for whoever reads data.
    virtual void process(std::span<const Column> columns, const Row& row);

    // One histogram. key: what it belongs to ("pid = 123", or empty); fields: the same for JSON.
    virtual void histogram(std::string_view title, std::string_view unit, const Histogram& histogram,
                           std::span<const std::pair<std::string_view, Cell>> fields, uint64_t wall_ns,
                           const BucketNotes& notes = {});

    // All of a report has been written. nothing: asked for the sentence that stands there where it shows nothing. Data
    // needs none.
    using Sentence = std::function<std::string()>;
    virtual void end_report(const Sentence& nothing, uint64_t wall_ns);

    virtual void lost(std::span<const Loss> losses) = 0; // those with count 0 are left out
    virtual void end(uint64_t duration_ns);

    // Hands everything written so far to stdout. Called before the loop sleeps. Throws what OutputBuffer::flush() does.
    virtual void flush() = 0;

    // Asked while stdout takes nothing, and for how long it has not: true where that is not worth waiting for any more.
    // Without it, it is waited for ever.
    using GivesUp = std::function<bool(std::chrono::nanoseconds stalled)>;
    virtual void give_up_when(GivesUp gives_up) { gives_up_ = std::move(gives_up); }

    // Where goes what only people are shown, and what only programs read: this one itself, or one of two beside each
    // other. Null: nowhere.
    virtual Output* for_people() { return this; }
    virtual Output* for_programs() { return nullptr; }
    // Where a row goes, by its number in a table of which people are shown at most so many (0: all). Null: nowhere.
    Output* place_of_row(size_t number, size_t most)
    {
        return !most || number < most || !for_people() ? this : for_programs();
    }

protected:
    GivesUp gives_up_;
};

// Shows nothing: for a tool with a screen of its own.
std::unique_ptr<Output> make_silent_output();
// timestamps: a TIME line or column (-T).
std::unique_ptr<Output> make_text_output(bool timestamps);
// run: whose lines these are, which each of them names.
std::unique_ptr<Output> make_json_output(std::optional<RunIdentity> run = {});
// For tools whose rows are all of one kind: the header has the columns' keys.
std::unique_ptr<Output> make_csv_output();

} // namespace gpusnoop
