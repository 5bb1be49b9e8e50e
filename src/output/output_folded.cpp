// SPDX-License-Identifier: Apache-2.0
// Stacks as flame graphs want them, one per line.
#include "output/output_buffer.hpp"
#include "util/append_format.hpp"
#include "util/text.hpp"

#include <algorithm>
#include <ranges>

namespace gpusnoop {
namespace {

constexpr std::string_view of_kernel = " (kernel)";

// Offsets would tell places of one function apart. Those of the kernel end as such programs expect it.
std::string folded(std::string_view frame)
{
    const size_t file = frame.rfind(" (");
    const std::string_view behind = file == std::string_view::npos ? std::string_view() : frame.substr(file);
    std::string_view function = frame.substr(0, file);
    function = function.substr(0, function.starts_with("0x") ? function.npos : function.rfind("+0x"));
    std::string text = printable(function);
    text += behind == of_kernel ? "_[k]" : printable(behind);
    std::ranges::replace(text, ';', ':');
    return text;
}

class FoldedOutput final : public Output {
public:
    FoldedOutput(std::string_view name, std::string_view number) : name_(name), number_(number) {}

    void lost(std::span<const Loss> losses) override { warn_of(losses); }
    void flush() override { buffer_.flush(); }

    void row(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        const auto* name = std::get_if<std::string>(&cell(columns, row, name_));
        const auto* number = std::get_if<uint64_t>(&cell(columns, row, number_));
        if (!number)
            return;
        buffer_.text += folded(name ? *name : "?");
        for (const std::string& frame : std::views::reverse(below.lines))
            buffer_.text += ';' + folded(frame);
        append_format(buffer_.text, " {}", *number);
        buffer_.line_ended();
    }

private:
    static const Cell& cell(std::span<const Column> columns, const Row& row, std::string_view key)
    {
        const auto found = std::ranges::find(columns, key, &Column::key);
        return cell_at(row, static_cast<size_t>(found - columns.begin()));
    }

    OutputBuffer buffer_{gives_up_};
    std::string_view name_, number_;
};

} // namespace

std::unique_ptr<Output> make_folded_output(std::string_view name, std::string_view number)
{
    return std::make_unique<FoldedOutput>(name, number);
}

} // namespace gpusnoop
