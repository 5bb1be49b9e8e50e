// SPDX-License-Identifier: Apache-2.0
// Reading and writing of recordings. A reader gets record by record, each with its run.
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

// From the first line of a run. If that line is missing, tool and host are taken from any other line.
struct RecordedRun {
    size_t number = 0; // index of the run in the recording
    std::string tool, version, host, command_line;
};

// Lines that were skipped.
struct Unread {
    Damage damage;
    uint64_t not_json = 0;
    uint64_t other_schema = 0; // lines of runs with an unknown schema
};

// Called for each line except the first one of a run.
using UseRecord = std::function<void(const RecordedRun&, const Record&, std::string_view line)>;

// Reads the files one after the other. Throws Error if one cannot be read.
Unread read_recording(std::span<const std::string> files, const UseRecord& use);

// The file of a recording. Appends whole lines and keeps existing ones. When the file has grown to half of `max` bytes,
// it replaces FILE.1, and a new file begins with copies of the run's first line and its current table line.
class RecordingFile final : public LineBuffer {
public:
    // Compressed if the name ends in ".gz" or ".zst". Throws Error if it cannot be opened or is not a recording.
    RecordingFile(std::string path, uint64_t max);
    ~RecordingFile() override;

    // Does not throw: a write error ends the recording, not the run, with a warning at once.
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
    uint64_t written_ = 0; // bytes in the current file
    std::string first_line_, table_line_;
    std::optional<std::string> failure_;
    bool dropped_ = false; // old data, by rotation
    bool finished_ = false;
};

// Records in addition to the normal output.
SideOutput make_recorded_output(std::unique_ptr<RecordingFile> file);

// A recorded report: its rows, as JSON lines.
struct Moment {
    size_t run = 0;       // index of its run
    uint64_t wall_ns = 0; // time of day at its end
    double seconds = 0;   // length of its interval
    std::vector<std::string> rows;
    std::optional<size_t> table{}; // index for Moments::table(); nullopt: not recorded
};

// All reports of one tool in a recording.
class Moments {
public:
    // Memory limit for rows, including their overhead; later rows are left out.
    static constexpr size_t bytes_max = size_t{512} << 20;
    static constexpr size_t row_overhead = sizeof(Moment) + sizeof(std::string);
    static constexpr size_t rows_max = 20'000; // of one report

    static constexpr size_t tables_max = 1000;

    // Reads the reports of a tool and sorts them by time. Throws Error if a file cannot be read, or there are none.
    Moments(std::span<const std::string> files, std::string_view tool, size_t max_bytes = bytes_max);

    const std::vector<Moment>& all() const { return all_; }
    const RecordedRun& run_of(const Moment& moment) const { return runs_[moment.run]; }
    // The columns of a table as it was shown, in the format of rows/table.hpp.
    const Record::Texts& table(size_t number) const { return tables_[number]; }
    // JSON keys of rows, except rows of GPUs, totals and diagnoses.
    const std::set<std::string>& keys() const { return keys_; }
    const Unread& unread() const { return unread_; }
    size_t left_out() const { return left_out_; } // rows that exceeded a limit
    uint64_t lost() const { return lost_; }       // events lost during recording

    // Index of the first report that ends at this time or later; the last one if none does.
    size_t at(uint64_t wall_ns) const;
    // The same for "10:05:30", local time on the day on which the recording begins, or a time in the format of JSON
    // lines. Empty: the first. Throws UsageError.
    size_t at(const std::string& time) const;

    // Sentences about missing data.
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
    std::map<size_t, size_t> table_of_run_; // current table, by RecordedRun::number
    std::set<std::string> keys_;
    std::set<std::string> other_tools_;
    Unread unread_;
    size_t left_out_ = 0;
    uint64_t lost_ = 0;
};

// As wall_ns_of(), but nullopt also for times before 1970 or after 2500.
std::optional<uint64_t> parse_wall_time(std::string_view time);

// True for rows about processes; false for rows about GPUs, totals and diagnoses. by: the value of "by".
bool is_main_row(std::string_view by);

} // namespace gpusnoop
