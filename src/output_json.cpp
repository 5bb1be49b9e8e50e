// SPDX-License-Identifier: Apache-2.0
// One JSON object per line, tagged by "type". Fields are only ever added within a schema number.
#include "output_buffer.hpp"
#include "text.hpp"

#include <algorithm>
#include <cmath>

namespace gpusnoop {

namespace {

constexpr uint64_t schema = 1;

using Fields = std::span<const std::pair<std::string_view, Cell>>;

class JsonOutput final : public Output {
public:
    void start(std::string_view tool, std::string_view version, std::optional<uint64_t> floor_ns) override
    {
        begin("start");
        text("tool", tool);
        text("version", version);
        integer("schema", schema);
        if (floor_ns)
            integer("duration_floor_ns", *floor_ns);
        end_record();
    }

    void attached(uint64_t functions, uint64_t files, std::string_view tier) override
    {
        begin("attached");
        integer("functions", functions);
        integer("files", files);
        text("tier", tier);
        end_record();
    }

    void begin_table(std::span<const Column>, uint64_t wall_ns, uint64_t interval_ns) override
    {
        table_wall_ns_ = wall_ns;
        table_interval_ns_ = interval_ns;
    }

    void row(std::span<const Column> columns, const Row& row, Below below) override
    {
        begin("row");
        time("time", table_wall_ns_);
        integer("interval_ns", table_interval_ns_);
        cells(columns, row);
        append(below);
        end_record();
    }

    void event(std::span<const Column> columns, const Row& row, Below below) override
    {
        begin("event");
        cells(columns, row);
        append(below);
        end_record();
    }

    void histogram(std::string_view title, std::string_view unit, const Histogram& histogram, Fields fields,
                   uint64_t wall_ns) override
    {
        begin("hist");
        time("time", wall_ns);
        text("title", title);
        text("unit", unit);
        append(fields);
        integer("total", histogram.total());
        if (histogram.total() != 0) {
            integer("p50", histogram.percentile(0.50));
            integer("p95", histogram.percentile(0.95));
            integer("p99", histogram.percentile(0.99));
        }
        key("buckets");
        out_ += '[';
        for (unsigned i = 0; i < histogram.counts().size(); ++i)
            if (uint64_t count = histogram.counts()[i])
                fmt::format_to(std::back_inserter(out_), R"({}{{"low":{},"high":{},"count":{}}})",
                               out_.back() == '[' ? "" : ",", Histogram::bucket_low(i), Histogram::bucket_high(i),
                               count);
        out_ += ']';
        end_record();
    }

    void lost(std::span<const Loss> losses) override
    {
        if (std::none_of(losses.begin(), losses.end(), [](const Loss& loss) { return loss.count != 0; }))
            return;
        begin("lost");
        for (const Loss& loss : losses)
            if (loss.count)
                integer(loss.key, loss.count);
        end_record();
        warn_of(losses);
    }

    void end(uint64_t duration_ns) override
    {
        begin("end");
        integer("duration_ns", duration_ns);
        end_record();
    }

    void flush() override { buffer_.flush(); }

private:
    void begin(std::string_view type) { out_.append(R"({"type":")").append(type).append("\""); }

    void end_record()
    {
        out_ += '}';
        buffer_.line_ended();
    }

    void append(Below below)
    {
        if (below.lines.empty())
            return;
        key(below.key);
        out_ += '[';
        for (const std::string& line : below.lines) {
            if (&line != below.lines.data())
                out_ += ',';
            append_json_string(out_, line);
        }
        out_ += ']';
    }

    void key(std::string_view name) { out_.append(",\"").append(name).append("\":"); }

    void text(std::string_view name, std::string_view value)
    {
        key(name);
        append_json_string(out_, value);
    }

    template<typename Integer>
    void integer(std::string_view name, Integer value)
    {
        key(name);
        const fmt::format_int digits(value);
        out_.append(digits.data(), digits.size());
    }

    void time(std::string_view name, uint64_t wall_ns)
    {
        key(name);
        out_ += '"';
        time_.append_iso(out_, wall_ns);
        out_ += '"';
    }

    void append(Fields fields)
    {
        for (const auto& [name, cell] : fields)
            std::visit([&, name = name](const auto& value) { append(name, Unit::count, value); }, cell);
    }

    void cells(std::span<const Column> columns, const Row& row)
    {
        for (size_t i = 0; i < columns.size(); ++i)
            if (columns[i].in_json)
                std::visit([&](const auto& value) { append(columns[i].key, columns[i].unit, value); }, row.at(i));
    }

    void append(std::string_view, Unit, std::monostate) {}
    void append(std::string_view name, Unit, const std::string& value) { text(name, value); }

    void append(std::string_view name, Unit, const Dim3& value)
    {
        key(name);
        fmt::format_to(std::back_inserter(out_), "[{},{},{}]", value[0], value[1], value[2]);
    }

    // At most three decimals. What does not print as a number in JSON has no key.
    void append(std::string_view name, Unit, double value)
    {
        if (!std::isfinite(value))
            return;
        key(name);
        if (std::fabs(value) >= 1e15) { // no decimals left in it, and up to 309 digits before them
            fmt::format_to(std::back_inserter(out_), "{}", value);
            return;
        }
        fmt::format_to(std::back_inserter(out_), "{:.3f}", value);
        while (out_.back() == '0')
            out_.pop_back();
        if (out_.back() == '.')
            out_.pop_back();
    }

    template<typename Integer>
    void append(std::string_view name, Unit unit, Integer value)
    {
        if (unit == Unit::time)
            return time(name, static_cast<uint64_t>(value));
        if (unit != Unit::hex)
            return integer(name, value);
        key(name);
        fmt::format_to(std::back_inserter(out_), "\"{:#x}\"", static_cast<uint64_t>(value));
    }

    OutputBuffer buffer_;
    std::string& out_ = buffer_.text;
    LocalTime time_;
    uint64_t table_wall_ns_ = 0;
    uint64_t table_interval_ns_ = 0;
};

} // namespace

std::unique_ptr<Output> make_json_output()
{
    return std::make_unique<JsonOutput>();
}

} // namespace gpusnoop
