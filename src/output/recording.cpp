// SPDX-License-Identifier: Apache-2.0
#include "output/recording.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

namespace {

constexpr size_t runs_max = 10'000;
constexpr double known_schema = 1;

class Runs {
public:
    // Lines of several runs may be mixed where each has an id; else they are of the one that began last.
    struct Run {
        RunOf of;
        bool known = true; // what its keys mean
    };

    // Of a run whose first line is missing, any other says as much as is needed.
    Run& of(const Record& record)
    {
        const std::string_view id = record.text("run");
        if (id.empty() && last_)
            return *last_;
        Run& run = add(id);
        if (run.of.tool.empty())
            note(run, record);
        return run;
    }

    Run& begin(const Record& record)
    {
        Run& run = add(record.text("run"));
        note(run, record);
        run.of.version = record.text("version");
        run.of.command_line = record.text("command_line");
        last_ = &run;
        return run;
    }

    void next_file() { last_ = nullptr; }

private:
    static void note(Run& run, const Record& record)
    {
        run.of.tool = record.text("tool");
        run.of.host = record.text("host");
        run.known = (record.type() != "start" && !record.number("schema")) || record.number("schema") == known_schema;
    }

    // A run that has no id is another one each time.
    Run& add(std::string_view id)
    {
        const std::string key = id.empty() ? "\n" + std::to_string(numbers_) : std::string(id);
        const auto found = runs_.find(key);
        if (found != runs_.end())
            return found->second;
        if (runs_.size() >= runs_max)
            runs_.clear();
        Run& run = runs_[key];
        run.of.number = numbers_++;
        run.of.id = id;
        if (id.empty())
            last_ = &run;
        return run;
    }

    std::map<std::string, Run> runs_;
    Run* last_ = nullptr;
    size_t numbers_ = 0;
};

} // namespace

Unread read_recording(std::span<const std::string> files, const UseRecord& use)
{
    Unread unread;
    Runs runs;
    for (const std::string& file : files) {
        RecordedLines lines(file);
        runs.next_file();
        while (const auto line = lines.next()) {
            if (line->empty())
                continue;
            const auto record = Record::parse(*line);
            if (!record)
                unread.not_json++;
            else if (record->type() == "start")
                runs.begin(*record);
            else if (const auto& run = runs.of(*record); run.known)
                use(run.of, *record, *line);
            else
                unread.other_schema++;
        }
        unread.damage.bytes += lines.damage().bytes;
        unread.damage.long_lines += lines.damage().long_lines;
        unread.damage.cut_off |= lines.damage().cut_off;
    }
    return unread;
}

namespace {

constexpr std::string_view begin_of_line = R"({"type":)";
constexpr std::string_view begin_of_table = R"({"type":"table",)";
constexpr std::string_view older = ".1"; // suffix
constexpr mode_t mode = 0644;

} // namespace

RecordingFile::RecordingFile(std::string path, uint64_t max)
    : packer_(packer_for(path)),
      path_(std::move(path), packer_ ? fmt::format("{} recording", packer_->name()) : "recording",
            packer_ ? packer_->magic() : begin_of_line),
      file_max_(max / 2)
{
    path_.open_existing(older); // that is to be replaced later: refused now, not after days
    file_ = path_.open(mode);
    end_last_line();
}

RecordingFile::~RecordingFile()
{
    finish();
}

void RecordingFile::finish()
{
    flush();
    if (!std::exchange(finished_, true))
        end_packed();
}

// The last line of a run that was killed may have no end.
void RecordingFile::end_last_line()
{
    struct stat st {};
    char last = '\n';
    if (fstat(file_.get(), &st) != 0)
        throw Error(
            fmt::format("the recording '{}' cannot be written: {}", printable(path_.path()), errno_text(errno)));
    written_ = static_cast<uint64_t>(st.st_size);
    if (!packer_ && written_ && pread(file_.get(), &last, 1, st.st_size - 1) == 1 && last != '\n' &&
        !write_all(file_.get(), "\n"))
        throw Error(
            fmt::format("the recording '{}' cannot be written: {}", printable(path_.path()), errno_text(errno)));
}

void RecordingFile::fail(int error)
{
    failure_ = fmt::format("the recording '{}' is not whole: it cannot be written: {}", printable(path_.path()),
                           errno_text(error));
    warn(*failure_);
}

bool RecordingFile::write(std::string_view lines)
{
    const std::string packed = packer_ ? packer_->packed(lines) : "";
    const std::string_view bytes = packer_ ? packed : lines;
    if (!write_all(file_.get(), bytes)) {
        fail(errno);
        return false;
    }
    written_ += bytes.size();
    return true;
}

void RecordingFile::end_packed()
{
    if (packer_ && !failure_ && !first_line_.empty() && !write_all(file_.get(), packer_->end()))
        fail(errno);
}

void RecordingFile::rotate()
{
    end_packed();
    try {
        if (path_.open_existing(older) && !std::exchange(dropped_, true))
            warn(fmt::format("the recording '{}' has reached its size (--record-max): what is oldest in it goes",
                             printable(path_.path())));
        path_.rename(file_, older);
        file_ = path_.create(mode);
    } catch (const Error& error) {
        failure_ = error.what();
        warn(*failure_);
        return;
    }
    written_ = 0;
    write(first_line_ + table_line_);
}

// Of the last line that says so.
void RecordingFile::note_table()
{
    const size_t at = text.rfind(begin_of_table);
    if (at != text.npos && (at == 0 || text[at - 1] == '\n'))
        table_line_ = text.substr(at, text.find('\n', at) + 1 - at);
}

void RecordingFile::flush()
{
    if (first_line_.empty())
        first_line_ = text.substr(0, text.find('\n') + 1);
    if (!failure_ && !text.empty() && written_ > first_line_.size() && written_ + text.size() > file_max_)
        rotate();
    if (!failure_ && !text.empty())
        write(text);
    note_table();
    text.clear();
}

OutputBeside make_recorded_output(std::unique_ptr<RecordingFile> file)
{
    RecordingFile& written = *file;
    return {make_json_output(this_run(), std::move(file)), [&written] {
                written.finish();
                if (written.failure())
                    throw Error(*written.failure());
            }};
}

} // namespace gpusnoop
