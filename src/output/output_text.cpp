// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "output/output_buffer.hpp"
#include "rows/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace gpusnoop {

// Text output in the style of bcc: one header, padded columns, star histograms.

namespace {

class TextOutput final : public Output {
public:
    explicit TextOutput(bool timestamps) : timestamps_(timestamps) {}

    void lost(std::span<const Loss> losses) override { warn_of(losses); }
    void flush() override { buffer_.flush(); }

    void begin_table(std::span<const Column>, uint64_t wall_ns, uint64_t) override { table_ns_ = wall_ns; }

    void row(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        shown_ = true;
        if (table_ns_) { // this is the first row of the table
            begin_block(*std::exchange(table_ns_, std::nullopt));
            header(columns);
        }
        line(columns, [&](size_t i, bool is_last) { return append_cell(columns[i], row.at(i), is_last); });
        for (const ExtraLines* more = &below; more; more = more->then)
            for (const std::string& line : more->lines) {
                buffer_.text += "    ";
                append_printable(buffer_.text, line);
                buffer_.line_ended();
            }
    }

    void event(std::span<const Column> columns, const Row& event, ExtraLines below) override
    {
        if (!std::exchange(has_event_header_, true))
            header(columns);
        row(columns, event, below);
    }

    void histogram(std::string_view title, std::string_view unit, const Histogram& histogram,
                   std::span<const std::pair<std::string_view, Cell>>, uint64_t wall_ns,
                   const BucketNotes& notes) override
    {
        if (histogram.total() == 0)
            return;
        shown_ = true;
        begin_block(wall_ns);
        std::string& out = buffer_.text;
        if (!title.empty()) {
            append_printable(out, title);
            buffer_.line_ended();
        }
        out += star_histogram(histogram, unit, notes);
        append_format(out, "p50 = {}, p95 = {}, p99 = {} {}", histogram.percentile(0.50), histogram.percentile(0.95),
                      histogram.percentile(0.99), unit);
        buffer_.line_ended();
    }

    void end_report(const Sentence& nothing, uint64_t wall_ns) override
    {
        table_ns_.reset();
        if (std::exchange(shown_, false))
            return;
        begin_block(wall_ns);
        append_printable(buffer_.text, nothing());
        buffer_.line_ended();
    }

private:
    // Begins a table, histogram or header. Writes a blank line first if there was output before, and the time if this
    // is the first block of a report.
    void begin_block(uint64_t wall_ns)
    {
        if (has_output_)
            buffer_.line_ended();
        has_output_ = true;
        if (timestamps_ && wall_ns != moment_) {
            cells_.append_clock(buffer_.text, wall_ns);
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

    // Writes a line. append(i, is_last) must append the text of column i and return its width in terminal columns.
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
        return cells_.append(buffer_.text, column.unit, cell, is_last ? std::string::npos : width_of(column));
    }

    OutputBuffer buffer_{gives_up_};
    CellText cells_;
    uint64_t moment_ = UINT64_MAX;     // time of day that begin_block() printed last, in ns; UINT64_MAX: none yet
    std::optional<uint64_t> table_ns_; // time of a table whose header was not written yet, because it has no row so far
    bool timestamps_;
    bool shown_ = false; // true if something was written since the last report ended
    bool has_output_ = false;
    bool has_event_header_ = false;
};

} // namespace

void Output::start(std::string_view, std::string_view, std::optional<uint64_t>) {}
void Output::attached(uint64_t, uint64_t, std::string_view, ExtraLines) {}
void Output::begin_table(std::span<const Column>, uint64_t, uint64_t) {}
void Output::event(std::span<const Column>, const Row&, ExtraLines) {}
void Output::process(std::span<const Column>, const Row&) {}
void Output::histogram(std::string_view, std::string_view, const Histogram&,
                       std::span<const std::pair<std::string_view, Cell>>, uint64_t, const BucketNotes&)
{}
void Output::end_report(const Sentence&, uint64_t) {}
void Output::end(uint64_t) {}

void Output::banner(std::string_view text)
{
    print_stderr(fmt::format("{}\n", text));
}

std::unique_ptr<Output> make_text_output(bool timestamps)
{
    return std::make_unique<TextOutput>(timestamps);
}

// CSV output: one header, then rows of a single kind. Follows RFC 4180, except that lines end with a newline only.

namespace {

// True if a spreadsheet would evaluate the text as a formula. Such a text is escaped, because process names are
// untrusted.
bool looks_like_a_formula(std::string_view text)
{
    return !text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos && text != "-";
}

void append_text(std::string& to, std::string_view text)
{
    const std::string safe = (looks_like_a_formula(text) ? "'" : "") + printable(text);
    if (safe.find_first_of(",\"") == std::string::npos) {
        to += safe;
        return;
    }
    to += '"';
    for (const char c : safe)
        to.append(c == '"' ? 2 : 1, c);
    to += '"';
}

void append_cell(std::string& to, const Cell& cell)
{
    if (const auto* text = std::get_if<std::string>(&cell))
        append_text(to, *text);
    else if (const auto* count = std::get_if<uint64_t>(&cell))
        to += fmt::format_int(*count).c_str();
    else if (const auto* number = std::get_if<double>(&cell))
        to += fmt::format("{:.9g}", *number);
}

class CsvOutput final : public Output {
public:
    void begin_table(std::span<const Column> columns, uint64_t, uint64_t) override
    {
        if (std::exchange(has_header_, true))
            return;
        line(columns.size(), [&](size_t i) { buffer_.text += columns[i].key; });
    }
    void row(std::span<const Column> columns, const Row& row, ExtraLines) override
    {
        line(columns.size(), [&](size_t i) { append_cell(buffer_.text, row.at(i)); });
    }
    void lost(std::span<const Loss> losses) override { warn_of(losses); }
    void flush() override { buffer_.flush(); }

private:
    void line(size_t cells, auto append)
    {
        for (size_t i = 0; i < cells; i++) {
            if (i)
                buffer_.text += ',';
            append(i);
        }
        buffer_.line_ended();
    }

    OutputBuffer buffer_{gives_up_};
    bool has_header_ = false;
};

} // namespace

std::unique_ptr<Output> make_csv_output()
{
    return std::make_unique<CsvOutput>();
}

} // namespace gpusnoop
