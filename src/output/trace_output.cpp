// SPDX-License-Identifier: Apache-2.0
#include "output/trace_output.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/output_path.hpp"
#include "base/text.hpp"
#include "output/compression.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string_view>

namespace gpusnoop {

namespace {

// Columns that can name an event, by header or key. The first one that has a text in the event line is used.
constexpr std::string_view names[] = {"KERNEL", "op", "wait", "call", "command", "operation", "kind", "function"};
// Columns with the duration of an event.
constexpr std::string_view durations[] = {"latency_ns", "gap_ns"};
// Columns that do not become arguments of an event, because they are shown elsewhere or not at all.
constexpr std::string_view left_out[] = {
    "time_ns", "time",    "pid",  "tid", "comm",      "ns_pid",     "latency_ns", "gap_ns", "container", "container_id",
    "runtime", "pod_uid", "unit", "uid", "slurm_job", "slurm_step", "cgroup",     "pod",    "namespace"};
constexpr size_t tracks_max = 65'536; // at this number, all tracks are forgotten, and their names are written again

const Cell& cell_of(std::span<const Column> columns, const Row& row, std::string_view name)
{
    const auto found = std::ranges::find_if(columns, [&](const Column& column) { return column.is_called(name); });
    return cell_at(row, static_cast<size_t>(found - columns.begin()));
}

std::optional<uint64_t> number_of(std::span<const Column> columns, const Row& row, std::string_view name)
{
    const auto* number = std::get_if<uint64_t>(&cell_of(columns, row, name));
    return number ? std::optional(*number) : std::nullopt;
}

std::string_view text_of(std::span<const Column> columns, const Row& row, std::string_view name)
{
    const auto* text = std::get_if<std::string>(&cell_of(columns, row, name));
    return text ? std::string_view(*text) : std::string_view();
}

std::string name_of(std::span<const Column> columns, const Row& row)
{
    if (number_of(columns, row, "gap_ns")) {
        const std::string_view reason = text_of(columns, row, "block_reason");
        return reason.empty() ? "gap" : fmt::format("gap ({})", reason);
    }
    for (const std::string_view name : names)
        if (const std::string_view text = text_of(columns, row, name); !text.empty())
            return std::string(text);
    return "call";
}

void append_us(std::string& to, std::string_view key, uint64_t ns)
{
    append_format(to, R"(,"{}":{}.{:03})", key, ns / 1000, ns % 1000);
}

void append_name(std::string& to, std::string_view event, uint64_t pid, uint64_t tid, std::string_view key,
                 std::string_view name)
{
    append_format(to, R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"{}":)", event, pid, tid, key);
    append_json_string(to, name);
    to += "}},\n";
}

} // namespace

TraceEvents::TraceEvents(std::string_view tool, uint64_t wall_ns, uint64_t clock_ns)
    : tool_(tool), wall_ns_(wall_ns), clock_ns_(clock_ns), base_ns_(trace_base_ns(wall_ns))
{}

// Names the tracks of the process and of the thread. Writes a name again if it has changed, for example because a pid
// was reused.
void TraceEvents::name_tracks(std::string& to, std::span<const Column> columns, const Row& row, uint64_t pid,
                              uint64_t tid)
{
    if (named_.size() >= tracks_max)
        named_.clear();
    const std::string_view comm = text_of(columns, row, "comm");
    const auto is_new = [&](uint64_t thread) {
        const auto [at, added] = named_.try_emplace({pid, thread}, comm);
        if (!added && at->second == comm)
            return false;
        at->second = comm;
        return true;
    };
    // A process gets the name of the first of its threads that appears in the trace.
    if (!named_.contains({pid, 0}) && is_new(0)) {
        append_name(to, "process_name", pid, 0, "name", comm);
        const std::string_view pod = text_of(columns, row, "pod");
        const std::string_view container = text_of(columns, row, "container");
        if (!pod.empty())
            append_name(to, "process_labels", pid, 0, "labels",
                        fmt::format("{}/{}", text_of(columns, row, "namespace"), pod));
        else if (!container.empty())
            append_name(to, "process_labels", pid, 0, "labels", container);
    }
    if (is_new(tid))
        append_name(to, "thread_name", pid, tid, "name", comm);
}

void TraceEvents::append_list(const ExtraLines& below)
{
    if (below.then)
        append_list(*below.then);
    std::string all;
    for (const std::string& line : below.lines)
        all += all.empty() ? line : '\n' + line;
    if (!all.empty())
        fields_.text(below.key, all);
}

void TraceEvents::append_arguments(std::string& to, std::span<const Column> columns, const Row& row,
                                   const ExtraLines& below)
{
    arguments_.clear();
    for (size_t i = 0; i < columns.size(); i++)
        if (columns[i].in_json && !columns[i].key.empty() &&
            std::ranges::find(left_out, columns[i].key) == std::end(left_out))
            fields_.cell(columns[i].key, columns[i].unit, cell_at(row, i));
    append_list(below);
    to.append(R"(,"args":{)").append(arguments_, arguments_.empty() ? 0 : 1).append("}"); // leaves out the first comma
}

bool TraceEvents::append(std::string& to, std::span<const Column> columns, const Row& row, const ExtraLines& below)
{
    const auto time = number_of(columns, row, "time_ns"), pid = number_of(columns, row, "pid"),
               tid = number_of(columns, row, "tid");
    if (!time || !pid || !tid)
        return false;
    name_tracks(to, columns, row, *pid, *tid);
    const uint64_t begin = *time - clock_ns_ + wall_ns_ - base_ns_;
    const std::string name = name_of(columns, row);
    const auto event = [&](char phase, uint64_t at) {
        to += R"({"name":)";
        append_json_string(to, name);
        append_format(to, R"(,"cat":"{}","ph":"{}","pid":{},"tid":{})", tool_, phase, *pid, *tid);
        append_us(to, "ts", at);
    };
    std::optional<uint64_t> duration;
    for (const std::string_view key : durations)
        if (!duration)
            duration = number_of(columns, row, key);
    const auto skew = number_of(columns, row, "skew_ns"), offset = number_of(columns, row, "offset_ns");
    if (duration) {
        event('X', begin);
        append_us(to, "dur", *duration);
    } else if (skew && offset && *skew >= *offset) {
        // An asynchronous event, because the call does not block: the thread may start its next collective while other
        // ranks have not yet joined this one.
        async_id_++;
        event('b', begin);
        append_format(to, R"(,"id":{})", async_id_);
        append_arguments(to, columns, row, below);
        to += "},\n";
        event('e', begin + *skew - *offset);
        append_format(to, R"(,"id":{}}},)", async_id_);
        to += '\n';
        return true;
    } else {
        event('i', begin);
        to += R"(,"s":"t")";
    }
    append_arguments(to, columns, row, below);
    to += "},\n";
    return true;
}

void TraceEvents::append_mark(std::string& to, std::string_view text, uint64_t wall_ns) const
{
    to += R"({"name":)";
    append_json_string(to, text);
    append_format(to, R"(,"cat":"{}","ph":"i","s":"g","pid":0,"tid":0)", tool_);
    append_us(to, "ts", wall_ns - base_ns_);
    to += "},\n";
}

namespace {

constexpr std::string_view trace_prefix = R"([{"name":"gpusnoop")";
constexpr size_t write_above = 256 << 10;

class TraceOutput final : public Output {
public:
    explicit TraceOutput(const std::string& path)
        : compressor_(path.ends_with(".gz") ? compressor_for(path) : nullptr),
          file_(path, compressor_ ? compressor_->magic() : trace_prefix, "trace")
    {}

    Output* for_people() override { return nullptr; }
    Output* for_programs() override { return this; }

    void start(std::string_view tool, std::string_view version, std::optional<uint64_t>) override
    {
        events_.emplace(tool, clock_ns(CLOCK_REALTIME), clock_ns(CLOCK_MONOTONIC));
        const RunIdentity run = this_run();
        text_ = trace_prefix;
        text_ += R"(,"ph":"M","pid":0,"tid":0,"args":{"version":)";
        append_json_string(text_, version);
        text_ += R"(,"host":)";
        append_json_string(text_, run.host);
        text_ += R"(,"command_line":)";
        append_json_string(text_, run.command);
        text_ += fmt::format(R"(,"baseTimeNanoseconds":{}}}}},)"
                             "\n",
                             events_->base_ns());
        write();
    }

    void row(std::span<const Column>, const Row&, ExtraLines) override {}
    void event(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        if (failure_ || !events_)
            return;
        events_->append(text_, columns, row, below);
        if (text_.size() > write_above)
            write();
    }

    void lost(std::span<const Loss> losses) override
    {
        for (const Loss& loss : losses)
            if (loss.count && events_)
                events_->append_mark(text_, fmt::format("{} {}", loss.count, loss.text), clock_ns(CLOCK_REALTIME));
    }

    void end(uint64_t) override
    {
        // Appends a dummy event, because no comma may follow the last event.
        text_ += R"({"name":"end","ph":"M","pid":0,"tid":0,"args":{}}])"
                 "\n";
        write();
        if (compressor_ && !failure_)
            write_bytes(compressor_->end());
    }

    // Compressed data is not flushed early, since small pieces do not compress well.
    void flush() override
    {
        if (!compressor_)
            write();
    }

    void check() const
    {
        if (failure_)
            throw Error(*failure_);
    }

private:
    void write()
    {
        if (!failure_ && !text_.empty())
            write_bytes(compressor_ ? compressor_->compress(text_) : text_);
        text_.clear();
    }
    // A write error causes a warning and ends the trace, but not the run.
    void write_bytes(std::string_view bytes)
    try {
        file_.write(bytes);
    } catch (const Error& error) {
        failure_ = error.what();
        warn(*failure_);
    }

    std::unique_ptr<Compressor> compressor_; // null: not compressed
    ResultFile file_;
    std::optional<TraceEvents> events_;
    std::string text_;
    std::optional<std::string> failure_;
};

} // namespace

SideOutput make_trace_output(const std::string& path)
{
    auto output = std::make_unique<TraceOutput>(path);
    const TraceOutput& written = *output;
    return {std::move(output), [&written] { written.check(); }};
}

} // namespace gpusnoop
