// SPDX-License-Identifier: Apache-2.0
// Comma-separated values (RFC 4180, but for the line end, which is a newline): one header, then rows of one kind.
#include "base/text.hpp"
#include "output/output_buffer.hpp"

#include <fmt/format.h>
#include <utility>

namespace gpusnoop {
namespace {

// Spreadsheets take what begins like this for a formula, and a process may call itself anything.
bool looks_like_a_formula(std::string_view text)
{
    return !text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos && text != "-";
}

void append_text(std::string& to, std::string_view text)
{
    const std::string harmless = (looks_like_a_formula(text) ? "'" : "") + printable(text);
    if (harmless.find_first_of(",\"") == std::string::npos) {
        to += harmless;
        return;
    }
    to += '"';
    for (const char c : harmless)
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
