// SPDX-License-Identifier: Apache-2.0
#include "output/recording.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/options.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
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
    // A line with a run id belongs to the run with that id, so lines of several runs may be interleaved. A line without
    // a run id belongs to the run that began last.
    struct Run {
        RecordedRun of;
        bool known = true; // the run's schema number is supported
    };

    // Returns the run to which a record belongs. If the run's first line is missing, takes the run's description from
    // this record.
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

    // Returns the run with this id, or adds it. Without an id, always adds a run.
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

constexpr std::string_view line_prefix = R"({"type":)";
constexpr std::string_view table_prefix = R"({"type":"table",)";
constexpr std::string_view old_suffix = ".1";
constexpr mode_t mode = 0644;

} // namespace

RecordingFile::RecordingFile(std::string path, uint64_t max)
    : compressor_(compressor_for(path)),
      path_(std::move(path), compressor_ ? fmt::format("{} recording", compressor_->name()) : "recording",
            compressor_ ? compressor_->magic() : line_prefix),
      file_max_(max / 2)
{
    // Throws now if there is a FILE.1 that rotation, perhaps days later, could not replace.
    path_.open_existing(old_suffix);
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

// Completes the last line of the file, which a killed run may have left without a newline.
void RecordingFile::end_last_line()
{
    struct stat st {};
    char last = '\n';
    if (fstat(file_.get(), &st) != 0)
        throw Error(
            fmt::format("the recording '{}' cannot be written: {}", printable(path_.path()), errno_text(errno)));
    written_ = static_cast<uint64_t>(st.st_size);
    if (!compressor_ && written_ && pread(file_.get(), &last, 1, st.st_size - 1) == 1 && last != '\n' &&
        !write_all(file_.get(), "\n"))
        throw Error(
            fmt::format("the recording '{}' cannot be written: {}", printable(path_.path()), errno_text(errno)));
}

void RecordingFile::fail(int error)
{
    failure_ = fmt::format("the recording '{}' is incomplete: it cannot be written: {}", printable(path_.path()),
                           errno_text(error));
    warn(*failure_);
}

bool RecordingFile::write(std::string_view lines)
{
    const std::string packed = compressor_ ? compressor_->compress(lines) : "";
    const std::string_view bytes = compressor_ ? packed : lines;
    if (!write_all(file_.get(), bytes)) {
        fail(errno);
        return false;
    }
    written_ += bytes.size();
    return true;
}

void RecordingFile::end_packed()
{
    if (compressor_ && !failure_ && !first_line_.empty() && !write_all(file_.get(), compressor_->end()))
        fail(errno);
}

void RecordingFile::rotate()
{
    end_packed();
    try {
        if (path_.open_existing(old_suffix) && !std::exchange(dropped_, true))
            warn(fmt::format("the recording '{}' has reached its maximum size (--record-max); dropping the oldest data",
                             printable(path_.path())));
        path_.rename(file_, old_suffix);
        file_ = path_.create(mode);
    } catch (const Error& error) {
        failure_ = error.what();
        warn(*failure_);
        return;
    }
    written_ = 0;
    write(first_line_ + table_line_);
}

void RecordingFile::remember_table_line()
{
    const size_t at = text.rfind(table_prefix);
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
    remember_table_line();
    text.clear();
}

SideOutput make_recorded_output(std::unique_ptr<RecordingFile> file)
{
    RecordingFile& written = *file;
    return {make_json_output(this_run(), std::move(file)), [&written] {
                written.finish();
                if (written.failure())
                    throw Error(*written.failure());
            }};
}

namespace {

constexpr double seconds_max = 1e9;
constexpr size_t keys_max = 1000, tools_max = 16;
constexpr uint64_t second_ns = 1'000'000'000, day_ns = 86'400 * second_ns;

} // namespace

bool is_main_row(std::string_view by)
{
    return by != "total" && by != "gpu" && by != "diagnosis";
}

std::optional<uint64_t> parse_wall_time(std::string_view time)
{
    constexpr double end_ns = 530.0 * 365.25 * 86400 * 1e9;
    const auto wall_ns = wall_ns_of(time);
    return wall_ns && *wall_ns >= 0 && *wall_ns < end_ns ? std::optional(static_cast<uint64_t>(*wall_ns))
                                                         : std::nullopt;
}

Moments::Moments(std::span<const std::string> files, std::string_view tool, size_t max_bytes)
    : tool_(tool), max_bytes_(max_bytes)
{
    unread_ = read_recording(
        files, [this](const RecordedRun& of, const Record& record, std::string_view line) { add(of, record, line); });
    if (all_.empty() && !other_tools_.empty())
        throw Error(fmt::format("'{}' is a recording of {}, not of {}", printable(files.front()),
                                printable(joined(other_tools_, ", ")), tool_));
    if (all_.empty())
        throw Error(fmt::format("'{}' has no tables of {}", printable(files.front()), tool_),
                    fmt::format("record with an interval: {} -j 1 > FILE, or --record FILE", tool_));
    std::ranges::stable_sort(all_, {}, &Moment::wall_ns);
}

void Moments::add(const RecordedRun& of, const Record& record, std::string_view line)
{
    if (of.tool != tool_) {
        if (!of.tool.empty() && other_tools_.size() < tools_max)
            other_tools_.insert(of.tool);
        return;
    }
    if (record.type() == "table")
        return set_table(of, record);
    lost_ += lost_in(record);
    const auto wall_ns = parse_wall_time(record.text("time"));
    if (record.type() != "row" || !wall_ns)
        return;
    if (bytes_ + line.size() + row_overhead > max_bytes_) {
        left_out_++;
        return;
    }
    if (runs_.empty() || runs_.back().number != of.number)
        runs_.push_back(of);
    const auto found = table_of_run_.find(of.number);
    const auto table = found == table_of_run_.end() ? std::nullopt : std::optional(found->second);
    // Rows about GPUs and totals are in tables of their own, but belong to the same report.
    const bool main = is_main_row(record.text("by"));
    if (all_.empty() || all_.back().wall_ns != *wall_ns || all_.back().run != runs_.size() - 1 ||
        (main && all_.back().table != table))
        all_.push_back({runs_.size() - 1,
                        *wall_ns,
                        std::clamp(record.number("interval_ns").value_or(0) / 1e9, 0.0, seconds_max),
                        {},
                        table});
    if (all_.back().rows.size() >= rows_max) {
        left_out_++;
        return;
    }
    bytes_ += line.size() + row_overhead;
    all_.back().rows.emplace_back(line);
    if (main)
        for (const auto& [key, value] : record.all())
            if (keys_.size() < keys_max)
                keys_.insert(key);
}

void Moments::set_table(const RecordedRun& of, const Record& record)
{
    const Record::Texts* columns = record.texts("columns");
    if (!columns)
        return;
    const auto found = std::ranges::find(tables_, *columns);
    if (found == tables_.end() && tables_.size() >= tables_max)
        return void(table_of_run_.erase(of.number));
    table_of_run_[of.number] = static_cast<size_t>(found - tables_.begin());
    if (found == tables_.end())
        tables_.push_back(*columns);
}

size_t Moments::at(const std::string& time) const
{
    if (time.empty())
        return 0;
    if (const auto wall_ns = parse_wall_time(time))
        return at(*wall_ns);
    const uint64_t begin = all_.front().wall_ns;
    auto seconds = static_cast<time_t>(begin / second_ns);
    tm local{};
    localtime_r(&seconds, &local);
    int end = 0;
    if (sscanf(time.c_str(), "%2d:%2d:%2d%n", &local.tm_hour, &local.tm_min, &local.tm_sec, &end) != 3 ||
        static_cast<size_t>(end) != time.size())
        throw UsageError(
            fmt::format("--at: '{}' is not a time; use 10:05:30, or a time in the format of JSON lines", time));
    local.tm_isdst = -1;
    const uint64_t wall_ns = static_cast<uint64_t>(mktime(&local)) * second_ns;
    return at(wall_ns + second_ns < begin ? wall_ns + day_ns
                                          : wall_ns); // a time before the beginning is on the next day
}

std::vector<std::string> Moments::missing() const
{
    std::vector<std::string> all;
    if (unread_.damage.cut_off)
        all.emplace_back("the recording is truncated: its incomplete last line was skipped");
    if (const uint64_t lines = unread_.not_json + unread_.damage.long_lines)
        all.push_back(fmt::format("{} lines of the recording are not JSON output of {}", lines, tool_));
    if (unread_.damage.bytes)
        all.push_back(fmt::format("{} bytes of the recording are damaged", unread_.damage.bytes));
    if (unread_.other_schema)
        all.push_back(fmt::format("{} lines of the recording have an unsupported schema", unread_.other_schema));
    if (left_out_)
        all.push_back(fmt::format("{} rows of the recording exceed the size limits and were left out", left_out_));
    if (lost_)
        all.push_back(fmt::format("{} events were lost during recording", lost_));
    return all;
}

size_t Moments::at(uint64_t wall_ns) const
{
    const auto found = std::ranges::lower_bound(all_, wall_ns, {}, &Moment::wall_ns);
    return found == all_.end() ? all_.size() - 1 : static_cast<size_t>(found - all_.begin());
}

} // namespace gpusnoop
