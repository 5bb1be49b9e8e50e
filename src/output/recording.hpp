// SPDX-License-Identifier: Apache-2.0
// A recording as its reader wants it: record by record, each with the run that it is of.
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

// What the line says that a run begins with; where that is missing, tool and host are what others say.
struct RecordedRun {
    size_t number = 0; // of those in the recording
    std::string tool, version, host, command_line;
};

// What was not handed out.
struct Unread {
    Damage damage;
    uint64_t not_json = 0;
    uint64_t other_schema = 0; // lines of runs whose keys may mean something else
};

// Gets each line but those that runs begin with, as it is read, and as it stands there.
using UseRecord = std::function<void(const RecordedRun&, const Record&, std::string_view line)>;

// files: one after the other. Throws Error where one cannot be read.
Unread read_recording(std::span<const std::string> files, const UseRecord& use);

// The file that lines of JSON are recorded in: whole lines, and no more of them than there is room for.

// What is in a recording already, stays. Where it has grown to half of `max`, the file becomes FILE.1, in place of the
// one before, and goes on in a new one, which begins as it did: with the line that says whose run it is, and the one
// that says how its rows are shown.
class RecordingFile final : public LineBuffer {
public:
    // Packed where the name ends in ".gz" or ".zst". Throws Error where it cannot be written, or is something else.
    RecordingFile(std::string path, uint64_t max);
    ~RecordingFile() override;

    // Never throws: a full disk ends the recording, not the run. It is told at once.
    void flush() override;

    // Nothing follows: also ends what is packed. Never throws.
    void finish();

    // Why it is not whole; nullopt where it is.
    const std::optional<std::string>& failure() const { return failure_; }

private:
    void end_last_line();
    bool write(std::string_view lines);
    void end_packed();
    void rotate();
    void note_table();
    void fail(int error);

    std::unique_ptr<Compressor> compressor_; // null: plain
    OutputPath path_;
    uint64_t file_max_;
    Fd file_;
    uint64_t written_ = 0; // to the file that is open
    std::string first_line_, table_line_;
    std::optional<std::string> failure_;
    bool dropped_ = false; // the first of what was recorded
    bool finished_ = false;
};

// A recording, beside what is shown.
SideOutput make_recorded_output(std::unique_ptr<RecordingFile> file);

// A recording of tables as it went: moment by moment, each with the rows of one report.
struct Moment {
    size_t run = 0;       // of Moments::runs()
    uint64_t wall_ns = 0; // time of day at its end
    double seconds = 0;   // how long it is
    std::vector<std::string> rows;
    std::optional<size_t> table{}; // of Moments::table(); nullopt: the recording does not say how it was shown
};

class Moments {
public:
    // Of rows that are kept, with what each takes beside its text; what comes later is left out.
    static constexpr size_t bytes_max = size_t{512} << 20;
    static constexpr size_t beside = sizeof(Moment) + sizeof(std::string);
    static constexpr size_t rows_max = 20'000; // of one moment

    static constexpr size_t tables_max = 1000;

    // Of one tool, in the order of time. Throws Error where a file cannot be read, or has none: it may be another's.
    Moments(std::span<const std::string> files, std::string_view tool, size_t most = bytes_max);

    const std::vector<Moment>& all() const { return all_; }
    const RecordedRun& run_of(const Moment& moment) const { return runs_[moment.run]; }
    // The columns that people were shown, as rows/table.hpp writes them.
    const Record::Texts& table(size_t number) const { return tables_[number]; }
    const std::set<std::string>& keys() const { return keys_; } // that rows have, but those of GPUs and diagnoses
    const Unread& unread() const { return unread_; }
    size_t left_out() const { return left_out_; } // rows
    uint64_t lost() const { return lost_; }       // that lines of the recording tell of

    // The first that ends at this time or later; the last one where none does.
    size_t at(uint64_t wall_ns) const;
    // The same by "10:05:30", of the day that the recording begins on where this runs, or by a time as JSON has it.
    // Empty: the first. Throws UsageError.
    size_t at(const std::string& time) const;

    // What is missing from what is shown, in sentences.
    std::vector<std::string> missing() const;

private:
    void take(const RecordedRun& of, const Record& record, std::string_view line);
    void take_table(const RecordedRun& of, const Record& record);

    std::string tool_;
    size_t most_;
    size_t bytes_ = 0;
    std::vector<RecordedRun> runs_;
    std::vector<Moment> all_;
    std::vector<Record::Texts> tables_;
    std::map<size_t, size_t> table_of_run_; // the one that its rows are of, by RecordedRun::number
    std::set<std::string> keys_;
    std::set<std::string> other_tools_;
    Unread unread_;
    size_t left_out_ = 0;
    uint64_t lost_ = 0;
};

// Nullopt also where it is before 1970, or after 2500.
std::optional<uint64_t> parse_wall_time(std::string_view time);

// Whether rows that say this of "by" are about processes, and not what is told beside them.
bool is_main_row(std::string_view by);

} // namespace gpusnoop
