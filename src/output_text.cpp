// SPDX-License-Identifier: Apache-2.0
// bcc's habits: one header, padded columns, star histograms.
#include "output_buffer.hpp"
#include "text.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpusnoop {

namespace {

bool is_left_aligned(Unit unit)
{
    return unit == Unit::text || unit == Unit::dim3 || unit == Unit::hex || unit == Unit::time;
}

size_t width_of(const Column& column)
{
    return std::max({column.header.size(), static_cast<size_t>(std::max<int>(column.width, 0)), size_t{1}});
}

class TextOutput final : public Output {
public:
    explicit TextOutput(bool timestamps) : timestamps_(timestamps) {}

    void start(std::string_view, std::string_view, std::optional<uint64_t>) override {}
    void attached(uint64_t, uint64_t, std::string_view) override {}
    void end(uint64_t) override {}
    void lost(std::span<const Loss> losses) override { warn_of(losses); }
    void flush() override { buffer_.flush(); }

    void begin_table(std::span<const Column> columns, uint64_t wall_ns, uint64_t) override
    {
        begin_block(wall_ns);
        header(columns);
    }

    void row(std::span<const Column> columns, const Row& row, Below below) override
    {
        line(columns, [&](size_t i, bool is_last) { return append_cell(columns[i], row.at(i), is_last); });
        for (const std::string& line : below.lines) {
            buffer_.text += "    ";
            append_printable(buffer_.text, line);
            buffer_.line_ended();
        }
    }

    void event(std::span<const Column> columns, const Row& event, Below below) override
    {
        if (!std::exchange(has_event_header_, true))
            header(columns);
        row(columns, event, below);
    }

    void histogram(std::string_view title, std::string_view unit, const Histogram& histogram,
                   std::span<const std::pair<std::string_view, Cell>>, uint64_t wall_ns) override
    {
        if (histogram.total() == 0)
            return;
        begin_block(wall_ns);
        std::string& out = buffer_.text;
        if (!title.empty()) {
            append_printable(out, title);
            buffer_.line_ended();
        }
        out += star_histogram(histogram, unit);
        fmt::format_to(std::back_inserter(out), "p50 = {}, p95 = {}, p99 = {} {}", histogram.percentile(0.50),
                       histogram.percentile(0.95), histogram.percentile(0.99), unit);
        buffer_.line_ended();
    }

private:
    // A blank line between blocks, the time above those of one moment.
    void begin_block(uint64_t wall_ns)
    {
        if (has_output_)
            buffer_.line_ended();
        has_output_ = true;
        if (timestamps_ && wall_ns != moment_) {
            time_.append_clock(buffer_.text, wall_ns);
            buffer_.line_ended();
            moment_ = wall_ns;
        }
    }

    void header(std::span<const Column> columns)
    {
        line(columns, [&](size_t i, bool) {
            buffer_.text += columns[i].header;
            return columns[i].header.size();
        });
    }

    // append(i, is_last) appends the text of column i and returns its width in code points.
    template<typename Append>
    void line(std::span<const Column> columns, Append append)
    {
        has_output_ = true;
        std::string& out = buffer_.text;
        const size_t line_start = out.size();
        auto is_shown = [](const Column& column) { return column.in_text; };
        auto last = std::find_if(columns.rbegin(), columns.rend(), is_shown).base() - columns.begin() - 1;
        for (ptrdiff_t i = 0; i <= last; ++i) {
            const Column& column = columns[static_cast<size_t>(i)];
            if (!column.in_text)
                continue;
            const size_t start = out.size();
            const size_t used = append(static_cast<size_t>(i), i == last);
            const size_t padding = width_of(column) - std::min(used, width_of(column));
            if (is_left_aligned(column.unit))
                out.append(padding, ' ');
            else
                out.insert(start, padding, ' ');
            out += ' ';
        }
        while (out.size() > line_start && out.back() == ' ')
            out.pop_back();
        buffer_.line_ended();
    }

    size_t append_cell(const Column& column, const Cell& cell, bool is_last)
    {
        std::string& out = buffer_.text;
        if (const auto* text = std::get_if<std::string>(&cell))
            return append_printable(out, *text, is_last ? std::string_view::npos : width_of(column));
        const size_t start = out.size();
        std::visit([&](const auto& value) { append_value(column.unit, value); }, cell);
        return out.size() - start;
    }

    void append_value(Unit, std::monostate) { buffer_.text += '-'; }
    void append_value(Unit, const std::string&) {} // append_cell() has it

    void append_value(Unit, const Dim3& value)
    {
        fmt::format_to(std::back_inserter(buffer_.text), "{},{},{}", value[0], value[1], value[2]);
    }

    void append_value(Unit unit, int64_t value)
    {
        if (value >= 0 || unit == Unit::hex)
            return append_value(unit, static_cast<uint64_t>(value));
        buffer_.text += '-';
        append_value(unit, -static_cast<uint64_t>(value));
    }

    void append_value(Unit unit, double value)
    {
        if (!std::isfinite(value))
            return append_value(unit, std::monostate{});
        const bool has_own_form = unit == Unit::bytes || unit == Unit::ns_as_us || unit == Unit::seconds;
        if (has_own_form && std::fabs(value) < 9e18) // bytes per second, a mean of nanoseconds
            return append_value(unit, static_cast<int64_t>(std::llround(value)));
        fmt::format_to(std::back_inserter(buffer_.text), "{:.1f}", value);
    }

    void append_value(Unit unit, uint64_t value)
    {
        switch (unit) {
        case Unit::bytes:
            buffer_.text += human_bytes(value);
            break;
        case Unit::ns_as_us:
            append_microseconds(value);
            break;
        case Unit::seconds: {
            const uint64_t microseconds = value / 1000 + (value % 1000 >= 500);
            fmt::format_to(std::back_inserter(buffer_.text), "{}.{:06}", microseconds / 1'000'000,
                           microseconds % 1'000'000);
            break;
        }
        case Unit::hex:
            fmt::format_to(std::back_inserter(buffer_.text), "{:#x}", value);
            break;
        case Unit::time:
            time_.append_clock(buffer_.text, value);
            break;
        default:
            append_integer(value);
        }
    }

    void append_integer(uint64_t value)
    {
        const fmt::format_int digits(value);
        buffer_.text.append(digits.data(), digits.size());
    }

    // One decimal as long as it says something.
    void append_microseconds(uint64_t ns)
    {
        const uint64_t tenths = ns / 100 + (ns % 100 >= 50);
        if (tenths >= 1000)
            return append_integer(ns / 1000 + (ns % 1000 >= 500));
        append_integer(tenths / 10);
        buffer_.text += '.';
        append_integer(tenths % 10);
    }

    OutputBuffer buffer_;
    LocalTime time_;
    uint64_t moment_ = UINT64_MAX; // the time that was last written above a block
    bool timestamps_;
    bool has_output_ = false;
    bool has_event_header_ = false;
};

} // namespace

void Output::banner(std::string_view text)
{
    fmt::print(stderr, "{}\n", text);
}

std::unique_ptr<Output> make_text_output(bool timestamps)
{
    return std::make_unique<TextOutput>(timestamps);
}

} // namespace gpusnoop
