// SPDX-License-Identifier: Apache-2.0
// One JSON object per line, tagged by "type". Fields are only ever added within a schema number.
#include "output/json_fields.hpp"
#include "output/output_buffer.hpp"
#include "util/append_format.hpp"
#include "util/text.hpp"

#include <algorithm>

namespace gpusnoop {

namespace {

constexpr uint64_t schema = 1;

using Fields = std::span<const std::pair<std::string_view, Cell>>;

class JsonOutput final : public Output {
public:
    void start(std::string_view tool, std::string_view version, std::optional<uint64_t> floor_ns) override
    {
        fields_.begin("start");
        fields_.text("tool", tool);
        fields_.text("version", version);
        fields_.integer("schema", schema);
        if (floor_ns)
            fields_.integer("duration_floor_ns", *floor_ns);
        end_record();
    }

    void attached(uint64_t functions, uint64_t files, std::string_view tier, ExtraLines remarks) override
    {
        fields_.begin("attached");
        fields_.integer("functions", functions);
        fields_.integer("files", files);
        fields_.text("tier", tier);
        append(remarks);
        end_record();
    }

    void begin_table(std::span<const Column>, uint64_t wall_ns, uint64_t interval_ns) override
    {
        table_wall_ns_ = wall_ns;
        table_interval_ns_ = interval_ns;
    }

    void row(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        fields_.begin("row");
        fields_.time("time", table_wall_ns_);
        fields_.integer("interval_ns", table_interval_ns_);
        fields_.cells(columns, row);
        append(below);
        end_record();
    }

    void event(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        fields_.begin("event");
        fields_.cells(columns, row);
        append(below);
        end_record();
    }

    void histogram(std::string_view title, std::string_view unit, const Histogram& histogram, Fields fields,
                   uint64_t wall_ns, const BucketNotes& notes) override
    {
        fields_.begin("hist");
        fields_.time("time", wall_ns);
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
        for (unsigned i = 0; i < histogram.counts().size(); ++i)
            if (uint64_t count = histogram.counts()[i]) {
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
        fields_.begin("lost");
        for (const Loss& loss : losses)
            if (loss.count)
                fields_.integer(loss.key, loss.count);
        end_record();
        warn_of(losses);
    }

    void end(uint64_t duration_ns) override
    {
        fields_.begin("end");
        fields_.integer("duration_ns", duration_ns);
        end_record();
    }

    void flush() override { buffer_.flush(); }

private:
    void end_record()
    {
        out_ += '}';
        buffer_.line_ended();
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
    }

    OutputBuffer buffer_{gives_up_};
    std::string& out_ = buffer_.text;
    JsonFields fields_{out_};
    uint64_t table_wall_ns_ = 0;
    uint64_t table_interval_ns_ = 0;
};

} // namespace

std::unique_ptr<Output> make_json_output()
{
    return std::make_unique<JsonOutput>();
}

} // namespace gpusnoop
