// SPDX-License-Identifier: Apache-2.0
// A recording as its reader wants it: record by record, each with the run that it is of.
#pragma once

#include "base/fd.hpp"
#include "base/output_path.hpp"
#include "output/output_buffer.hpp"
#include "output/outputs_beside.hpp"
#include "output/packer.hpp"
#include "output/record.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// What the line says that a run begins with; where that is missing, tool and host are what others say.
struct RunOf {
    size_t number = 0; // of those in the recording
    std::string id;
    std::string tool, version, host, command_line;
};

// What was not handed out.
struct Unread {
    Damage damage;
    uint64_t not_json = 0;
    uint64_t other_schema = 0; // lines of runs whose keys may mean something else
};

// Gets each line but those that runs begin with, as it is read, and as it stands there.
using UseRecord = std::function<void(const RunOf&, const Record&, std::string_view line)>;

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

    std::unique_ptr<Packer> packer_; // null: plain
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
OutputBeside make_recorded_output(std::unique_ptr<RecordingFile> file);

} // namespace gpusnoop
