// SPDX-License-Identifier: Apache-2.0
// JSON output: one object per line, whose "type" is the kind of line. While the schema number stays the same, fields
// are added but never removed or changed.
#include "base/clock.hpp"
#include "base/text.hpp"
#include "output/json_fields.hpp"
#include "output/output_buffer.hpp"
#include "rows/table.hpp"

#include <algorithm>

namespace gpusnoop {

namespace {

constexpr uint64_t schema = 1;

using Fields = std::span<const std::pair<std::string_view, Cell>>;

class JsonOutput final : public Output {
public:
    JsonOutput(std::optional<RunIdentity> run, std::unique_ptr<LineBuffer> to)
        : run_(std::move(run)), is_side_output_(to),
          buffer_(to ? std::move(to) : std::make_unique<OutputBuffer>(gives_up_))
    {}

    Output* for_people() override { return nullptr; }
    Output* for_programs() override { return this; }

    void start(std::string_view tool, std::string_view version, std::optional<uint64_t> floor_ns) override
    {
        note_identity(tool);
        begin("start");
        if (!run_) {
            fields_.text("tool", tool);
            fields_.integer("schema", schema);
        }
        fields_.text("version", version);
        if (floor_ns)
            fields_.integer("duration_floor_ns", *floor_ns);
        if (run_) {
            fields_.text("command_line", run_->command);
            now();
            if (const auto error = clock_error()) {
                fields_.integer("clock_error_us", error->max_us);
                fields_.integer("clock_synchronized", error->synchronized);
            }
        }
        end_record();
    }

    void attached(uint64_t functions, uint64_t files, std::string_view tier, ExtraLines remarks) override
    {
        begin("attached");
        now();
        fields_.integer("functions", functions);
        fields_.integer("files", files);
        fields_.text("tier", tier);
        append(remarks);
        end_record();
    }

    void begin_table(std::span<const Column> columns, uint64_t wall_ns, uint64_t interval_ns) override
    {
        table_wall_ns_ = wall_ns;
        table_interval_ns_ = interval_ns;
        if (run_) {
            next_table_ = table_columns(columns);
            table_ns_ = monotonic_ns(wall_ns);
        }
    }

    void row(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        if (!next_table_.empty() && next_table_ != table_)
            write_table();
        begin("row");
        fields_.time("time", table_wall_ns_);
        fields_.integer("interval_ns", table_interval_ns_);
        if (run_)
            fields_.integer("monotonic_ns", table_ns_);
        fields_.cells(columns, row);
        append(below);
        end_record();
    }

    void event(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        begin("event");
        fields_.cells(columns, row);
        if (run_ && std::ranges::find(columns, "time_ns", &Column::key) == columns.end())
            fields_.integer("monotonic_ns", monotonic_ns(time_of(columns, row)));
        append(below);
        end_record();
    }

    void process(std::span<const Column> columns, const Row& row) override
    {
        begin("process");
        now();
        fields_.cells(columns, row);
        end_record();
    }

    void histogram(std::string_view title, std::string_view unit, const Histogram& histogram, Fields fields,
                   uint64_t wall_ns, const BucketNotes& notes) override
    {
        begin("hist");
        moment(wall_ns);
        fields_.text("title", title);
        fields_.text("unit", unit);
        for (const auto& [name, cell] : fields)
            fields_.cell(name, Unit::count, cell);
        fields_.integer("total", histogram.total());
        if (histogram.total() != 0) {
            fields_.integer("p50", histogram.percentile(0.50));
            fields_.integer("p95", histogram.percentile(0.95));
            fields_.integer("p99", histogram.percentile(0.99));
        }
        fields_.key("buckets");
        out_ += '[';
        for (unsigned i = 0; i < HISTOGRAM_BUCKETS; ++i)
            if (uint64_t count = histogram.count(i)) {
                append_format(out_, R"({}{{"low":{},"high":{},"count":{})", out_.back() == '[' ? "" : ",",
                              Histogram::bucket_low(i), Histogram::bucket_high(i), count);
                if (notes.fields)
                    for (const auto& [name, value] : notes.fields(i))
                        fields_.integer(name, value);
                out_ += '}';
            }
        out_ += ']';
        end_record();
    }

    void lost(std::span<const Loss> losses) override
    {
        if (std::none_of(losses.begin(), losses.end(), [](const Loss& loss) { return loss.count != 0; }))
            return;
        begin("lost");
        now();
        for (const Loss& loss : losses)
            if (loss.count)
                fields_.integer(loss.key, loss.count);
        end_record();
        if (!is_side_output_) // the main output prints this warning, so a side output must not repeat it
            warn_of(losses);
    }

    void end(uint64_t duration_ns) override
    {
        begin("end");
        now();
        fields_.integer("duration_ns", duration_ns);
        end_record();
    }

    void flush() override { buffer_->flush(); }

private:
    void begin(std::string_view type)
    {
        fields_.begin(type);
        out_ += identity_;
    }

    // Prepares the fields that identify the run on every line.
    void note_identity(std::string_view tool)
    {
        if (!run_)
            return;
        JsonFields fields(identity_);
        fields.text("run", run_->run);
        fields.text("host", run_->host);
        fields.text("boot_id", run_->boot_id);
        fields.text("tool", tool);
        fields.integer("schema", schema);
    }

    // Appends the time of day and, in recordings, the CLOCK_MONOTONIC time.
    void moment(uint64_t wall_ns)
    {
        fields_.time("time", wall_ns);
        if (run_)
            fields_.integer("monotonic_ns", monotonic_ns(wall_ns));
    }

    // In recordings, appends the current time.
    void now()
    {
        if (run_)
            moment(clock_ns(CLOCK_REALTIME));
    }

    static uint64_t monotonic_ns(uint64_t wall_ns)
    {
        return clock_ns(CLOCK_MONOTONIC) - (clock_ns(CLOCK_REALTIME) - wall_ns);
    }

    static uint64_t time_of(std::span<const Column> columns, const Row& row)
    {
        const auto place = std::ranges::find(columns, "time", &Column::key) - columns.begin();
        const auto* wall_ns = std::get_if<uint64_t>(&cell_at(row, static_cast<size_t>(place)));
        return wall_ns ? *wall_ns : clock_ns(CLOCK_REALTIME);
    }

    // Writes a line that describes the columns that the following rows have in text output, for --replay.
    void write_table()
    {
        table_ = next_table_;
        begin("table");
        now();
        append({"columns", table_});
        end_record();
    }

    void end_record()
    {
        out_ += '}';
        buffer_->line_ended();
    }

    void append(const ExtraLines& below)
    {
        if (below.then)
            append(*below.then);
        if (below.lines.empty())
            return;
        fields_.key(below.key);
        out_ += '[';
        for (const std::string& line : below.lines) {
            if (&line != below.lines.data())
                out_ += ',';
            append_json_string(out_, line);
        }
        out_ += ']';
        append(below.parts);
    }

    // Appends the stack in structured form, in addition to the text of its frames.
    void append(std::span<const CodeFrame> parts)
    {
        if (parts.empty())
            return;
        fields_.key("stack");
        out_ += '[';
        for (const CodeFrame& part : parts) {
            if (part.language.empty())
                continue;
            out_ += out_.back() == '[' ? "{\"language\":" : ",{\"language\":";
            append_json_string(out_, part.language);
            if (!part.function.empty())
                fields_.text("function", part.function);
            if (!part.file.empty())
                fields_.text("file", part.file);
            if (part.line)
                fields_.integer("line", *part.line);
            out_ += '}';
        }
        out_ += ']';
    }

    std::optional<RunIdentity> run_;
    std::string identity_; // the fields of run_, as printed on each line
    bool is_side_output_;
    std::unique_ptr<LineBuffer> buffer_;
    std::string& out_ = buffer_->text;
    JsonFields fields_{out_};
    uint64_t table_wall_ns_ = 0;
    uint64_t table_interval_ns_ = 0;
    uint64_t table_ns_ = 0; // CLOCK_MONOTONIC
    std::vector<std::string> table_, next_table_;
};

} // namespace

std::unique_ptr<Output> make_json_output(std::optional<RunIdentity> run)
{
    return std::make_unique<JsonOutput>(std::move(run), nullptr);
}

std::unique_ptr<Output> make_json_output(RunIdentity run, std::unique_ptr<LineBuffer> to)
{
    return std::make_unique<JsonOutput>(std::move(run), std::move(to));
}

} // namespace gpusnoop
