// SPDX-License-Identifier: Apache-2.0
// Reading and writing of recordings.
#pragma once

#include "base/fd.hpp"
#include "base/output_path.hpp"
#include "output/compression.hpp"
#include "output/output_buffer.hpp"
#include "output/record.hpp"
#include "output/side_outputs.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// Description of a run, read from the run's first line. If that line is missing, tool and host are read from another
// line.
struct RecordedRun {
    size_t number = 0; // index of the run in the recording
    std::string tool, version, host, command_line;
};

// Data in a recording that could not be read.
struct Unread {
    Damage damage;
    uint64_t not_json = 0;
    uint64_t other_schema = 0; // lines of runs whose schema number is not supported
};

// Called for each line except the first line of a run.
using UseRecord = std::function<void(const RecordedRun&, const Record&, std::string_view line)>;

// Reads the files in the given order. Throws Error if a file cannot be read.
Unread read_recording(std::span<const std::string> files, const UseRecord& use);

// Writer of a recording. Appends lines to the file, and keeps the file's earlier contents. When the file reaches half
// of `max` bytes, it is renamed to FILE.1, which replaces an older FILE.1. The new file begins with copies of the run's
// first line and its latest table line.
class RecordingFile final : public LineBuffer {
public:
    // The file is compressed if its name ends in ".gz" or ".zst". Throws Error if it cannot be opened, or exists and is
    // not a recording.
    RecordingFile(std::string path, uint64_t max);
    ~RecordingFile() override;

    // Does not throw. A write error causes a warning and ends the recording, but not the run.
    void flush() override;

    // Ends the recording and its compressed stream. Does not throw.
    void finish();

    // Why the recording is incomplete; nullopt if it is complete.
    const std::optional<std::string>& failure() const { return failure_; }

private:
    void end_last_line();
    bool write(std::string_view lines);
    void end_packed();
    void rotate();
    void remember_table_line();
    void fail(int error);

    std::unique_ptr<Compressor> compressor_; // null: not compressed
    OutputPath path_;
    uint64_t file_max_;
    Fd file_;
    uint64_t written_ = 0; // size of the current file in bytes
    std::string first_line_, table_line_;
    std::optional<std::string> failure_;
    bool dropped_ = false; // rotation has dropped old data
    bool finished_ = false;
};

// Output that writes JSON lines to a recording, in addition to the normal output.
SideOutput make_recorded_output(std::unique_ptr<RecordingFile> file);

// A recorded report, with its rows as JSON lines.
struct Moment {
    size_t run = 0;       // index of the run, for Moments::run_of()
    uint64_t wall_ns = 0; // time of day at the end of the report's interval
    double seconds = 0;   // length of the interval
    std::vector<std::string> rows;
    std::optional<size_t> table{}; // argument for Moments::table(); nullopt if the layout was not recorded
};

// All reports of one tool in a recording.
class Moments {
public:
    // Memory limit in bytes for all rows, including row_overhead per row. Rows beyond the limit are left out.
    static constexpr size_t bytes_max = size_t{512} << 20;
    static constexpr size_t row_overhead = sizeof(Moment) + sizeof(std::string);
    static constexpr size_t rows_max = 20'000; // maximum number of rows per report

    static constexpr size_t tables_max = 1000;

    // Reads the reports of a tool and sorts them by time. Throws Error if a file cannot be read, or there are no
    // reports.
    Moments(std::span<const std::string> files, std::string_view tool, size_t max_bytes = bytes_max);

    const std::vector<Moment>& all() const { return all_; }
    const RecordedRun& run_of(const Moment& moment) const { return runs_[moment.run]; }
    // Returns one description for each column that the table has in text output. The format is that of table_columns()
    // in rows/table.hpp.
    const Record::Texts& table(size_t number) const { return tables_[number]; }
    // JSON keys that occur in rows, except rows about GPUs, totals and diagnoses.
    const std::set<std::string>& keys() const { return keys_; }
    const Unread& unread() const { return unread_; }
    size_t left_out() const { return left_out_; } // number of rows left out because a limit was reached
    uint64_t lost() const { return lost_; }       // number of events lost during recording

    // Returns the index of the first report that ends at this time or later; the last report if all end earlier.
    size_t at(uint64_t wall_ns) const;
    // Like at(wall_ns), for a time as text: either a local time on the day when the recording begins, such as
    // "10:05:30", or a time in the format of JSON lines. An empty text means the first report. Throws UsageError.
    size_t at(const std::string& time) const;

    // Sentences for the user about data that is missing from the recording.
    std::vector<std::string> missing() const;

private:
    void add(const RecordedRun& of, const Record& record, std::string_view line);
    void set_table(const RecordedRun& of, const Record& record);

    std::string tool_;
    size_t max_bytes_;
    size_t bytes_ = 0;
    std::vector<RecordedRun> runs_;
    std::vector<Moment> all_;
    std::vector<Record::Texts> tables_;
    std::map<size_t, size_t> table_of_run_; // latest table of each run, by RecordedRun::number
    std::set<std::string> keys_;
    std::set<std::string> other_tools_;
    Unread unread_;
    size_t left_out_ = 0;
    uint64_t lost_ = 0;
};

// Like wall_ns_of(), but also returns nullopt for times before 1970 or after 2500.
std::optional<uint64_t> parse_wall_time(std::string_view time);

// True for rows about processes, false for rows about GPUs, totals and diagnoses. by: the row's value for key "by".
bool is_main_row(std::string_view by);

} // namespace gpusnoop
