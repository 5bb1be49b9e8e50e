// SPDX-License-Identifier: Apache-2.0
#include "output/flames_output.hpp"

#include "base/clock.hpp"
#include "base/output_path.hpp"
#include "base/text.hpp"
#include "output/flame_formats.hpp"
#include "output/output_buffer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

namespace gpusnoop {

namespace {

constexpr std::string_view kernel_suffix = " (kernel)";

// Headers or keys of the columns that become outer frames. A table has these columns only if its rows are grouped by
// them (--by), or with --extra-columns.
constexpr std::string_view owners[] = {"NAMESPACE", "POD", "CONTAINER", "OWNER", "CGROUP"};
// Headers or keys of columns. The first of these columns that is not empty in a row becomes the row's innermost frame.
constexpr std::string_view operations[] = {"KERNEL", "after_kernel", "kind", "wait", "command", "OP", "CALL"};

const Cell* shown(std::span<const Column> columns, const Row& row, std::string_view name, bool in_text)
{
    for (size_t i = 0; i < columns.size(); i++)
        if (columns[i].is_called(name) && (columns[i].in_text || !in_text) &&
            !std::holds_alternative<std::monostate>(cell_at(row, i)))
            return &cell_at(row, i);
    return nullptr;
}

// Removes the offset of a frame, so that all addresses in a function become one frame.
std::string function_of(std::string_view frame)
{
    const size_t file = frame.rfind(" (");
    const std::string_view suffix = file == std::string_view::npos ? std::string_view() : frame.substr(file);
    std::string_view function = frame.substr(0, file);
    function = function.substr(0, function.starts_with("0x") ? function.npos : function.rfind("+0x"));
    return printable(function).append(suffix == kernel_suffix ? std::string(kernel_mark) : printable(suffix));
}

std::string process_of(std::span<const Column> columns, const Row& row)
{
    const Cell* const name = shown(columns, row, "comm", false);
    const Cell* const pid = shown(columns, row, "pid", false);
    const auto* text = name ? std::get_if<std::string>(name) : nullptr;
    const auto* number = pid ? std::get_if<uint64_t>(pid) : nullptr;
    return (text ? printable(*text) : std::string("?")) + (number ? fmt::format("-{}", *number) : "");
}

} // namespace

std::vector<std::string> flame_stack(std::span<const Column> columns, const Row& row, const ExtraLines& below)
{
    std::vector<std::string> stack;
    for (const std::string_view name : owners)
        if (const Cell* const owner = shown(columns, row, name, true))
            if (const auto* text = std::get_if<std::string>(owner))
                stack.push_back(printable(*text));
    stack.push_back(process_of(columns, row));
    if (const Cell* const thread = shown(columns, row, "TID", true))
        if (const auto* number = std::get_if<uint64_t>(thread))
            stack.push_back(fmt::format("thread {}", *number));
    for (const ExtraLines* list = &below; list; list = list->then)
        if (list->key == ExtraLines().key)
            std::transform(list->lines.rbegin(), list->lines.rend(), std::back_inserter(stack), function_of);
    for (const std::string_view name : operations)
        if (const Cell* const operation = shown(columns, row, name, false))
            if (const auto* text = std::get_if<std::string>(operation)) {
                stack.push_back(printable(*text));
                break;
            }
    return stack;
}

namespace {

uint64_t sum_of(uint64_t a, uint64_t b)
{
    return a + b < a ? std::numeric_limits<uint64_t>::max() : a + b;
}

// Truncates the name to at most `bytes` bytes, at a code point boundary.
std::string_view truncated_to(std::string_view name, size_t bytes)
{
    if (name.size() <= bytes)
        return name;
    while (bytes > 0 && (static_cast<unsigned char>(name[bytes]) & 0xc0) == 0x80)
        bytes--;
    return name.substr(0, bytes);
}

} // namespace

StackTree::StackTree(const Limits& limits) : limits_(limits)
{
    names_.emplace_back();
    nodes_.emplace_back();
}

uint32_t StackTree::name_number(std::string_view name)
{
    name = truncated_to(name.empty() ? "?" : name, limits_.one_name);
    if (const auto found = numbers_.find(name); found != numbers_.end())
        return found->second;
    if (name_bytes_ + name.size() > limits_.name_bytes)
        return 0;
    name_bytes_ += name.size();
    const auto number = static_cast<uint32_t>(names_.size());
    numbers_.emplace(names_.emplace_back(name), number);
    return number;
}

void StackTree::add(std::span<const std::string> frames, uint64_t weight)
{
    uint32_t at = 0;
    for (const std::string& frame : frames) {
        const uint32_t name = name_number(frame);
        const auto found = children_.find(uint64_t{at} << 32 | name);
        if (found != children_.end()) {
            at = found->second;
            continue;
        }
        if (!name || nodes_.size() >= limits_.frames) {
            truncated_++;
            break;
        }
        const auto next = static_cast<uint32_t>(nodes_.size());
        nodes_.push_back({.name = name, .parent = at, .depth = nodes_[at].depth + 1, .own = 0});
        children_.emplace(uint64_t{at} << 32 | name, next);
        at = next;
    }
    nodes_[at].own = sum_of(nodes_[at].own, weight);
}

void StackTree::clear_weights()
{
    for (Node& node : nodes_)
        node.own = 0;
}

// Adds each node's total to the total of its caller. The loop runs backwards, because callees have higher indices than
// their callers.
std::vector<uint64_t> StackTree::totals() const
{
    std::vector<uint64_t> totals;
    for (const Node& node : nodes_)
        totals.push_back(node.own);
    for (size_t i = nodes_.size() - 1; i > 0; i--)
        totals[nodes_[i].parent] = sum_of(totals[nodes_[i].parent], totals[i]);
    return totals;
}

std::vector<uint32_t> StackTree::stack_of(uint32_t node) const
{
    std::vector<uint32_t> stack;
    for (; node; node = nodes_[node].parent)
        stack.push_back(node);
    return stack;
}

namespace {

class FlamesOutput : public Output {
public:
    explicit FlamesOutput(const Options& options)
    {
        if (!options.weight.empty())
            requested_ = find_weight(options.weight);
        for (const auto& [option, path] : options.flames)
            for (const FlameFormat& form : flame_formats())
                if (form.option == option)
                    files_.push_back({&form, ResultFile(path, form.begin, "flame graph")});
    }

    // As an output for programs, it receives all rows. An output for people receives at most --rows of them.
    Output* for_people() override { return nullptr; }
    Output* for_programs() override { return this; }

    void start(std::string_view tool, std::string_view version, std::optional<uint64_t>) override
    {
        tool_ = tool;
        version_ = version;
        began_wall_ns_ = clock_ns(CLOCK_REALTIME);
    }

    // Counts are summed over all tables. For levels, such as bytes held, only the last table counts.
    void begin_table(std::span<const Column> columns, uint64_t, uint64_t) override
    {
        choose_weight(columns, default_weight(columns));
        const size_t at = weight_ ? column_of(columns, weight_->key) : columns.size();
        if (at < columns.size() && columns[at].is_level)
            stacks_.clear_weights();
    }
    void row(std::span<const Column> columns, const Row& row, ExtraLines below) override { add(columns, row, below); }
    void event(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        choose_weight(columns, default_line_weight(columns));
        add(columns, row, below);
    }

    void lost(std::span<const Loss> losses) override
    {
        for (const Loss& loss : losses)
            lost_ += loss.count;
    }

    void end(uint64_t duration_ns) override
    {
        const std::string command = this_run().command;
        const std::string missing = missing_data();
        const Weight& weight = weight_ ? *weight_ : lines_weight;
        const Flames flames{stacks_, weight, tool_, version_, command, began_wall_ns_, duration_ns, missing};
        for (auto& [form, file] : files_)
            try {
                file.write(form->write(flames));
            } catch (const Error& error) {
                failure_ = error.what();
            }
        if (!missing.empty())
            warn(fmt::format("flame graph: {}", missing));
        if (!weight_ && requested_)
            failure_ = fmt::format("no row has '{}', the metric chosen with --weight", requested_->key);
        ended(flames);
    }

    void flush() override {}

    void check() const
    {
        if (failure_)
            throw Error(*failure_);
    }

protected:
    virtual void ended(const Flames&) {}

private:
    // Chooses the metric when the first rows arrive. The metric then stays the same, because values of different
    // metrics cannot be summed.
    void choose_weight(std::span<const Column> columns, const Weight* fallback)
    {
        if (weight_)
            return;
        if (!requested_)
            weight_ = fallback;
        else if (column_of(columns, requested_->key) < columns.size())
            weight_ = requested_;
    }

    void add(std::span<const Column> columns, const Row& row, const ExtraLines& below)
    {
        if (!weight_)
            return;
        const auto weight = weight_in(columns, row, weight_->key);
        if (!weight)
            unknown_++;
        else if (*weight)
            stacks_.add(flame_stack(columns, row, below), *weight);
    }

    std::string missing_data() const
    {
        std::vector<std::string> all;
        if (lost_)
            all.push_back(fmt::format("{} calls or lines were lost", lost_));
        if (unknown_)
            all.push_back(fmt::format("{} rows have no {}", unknown_, weight_->text));
        if (stacks_.truncated())
            all.push_back(fmt::format("{} stacks are truncated because there are too many", stacks_.truncated()));
        return joined(all, "; ");
    }

    struct File {
        const FlameFormat* form;
        ResultFile file;
    };

    const Weight* requested_ = nullptr;
    const Weight* weight_ = nullptr;
    std::vector<File> files_;
    std::string tool_, version_;
    uint64_t began_wall_ns_ = 0;
    StackTree stacks_;
    uint64_t lost_ = 0, unknown_ = 0;
    std::optional<std::string> failure_;
};

class FoldedOutput final : public FlamesOutput {
public:
    using FlamesOutput::FlamesOutput;

    void lost(std::span<const Loss> losses) override
    {
        FlamesOutput::lost(losses);
        warn_of(losses);
    }
    void end(uint64_t duration_ns) override
    {
        FlamesOutput::end(duration_ns);
        flush();
        check();
    }
    void flush() override { buffer_.flush(); }

private:
    void ended(const Flames& flames) override { buffer_.text += folded_flames(flames); }

    OutputBuffer buffer_{gives_up_};
};

} // namespace

void check_flame_options(const Options& options)
{
    if (!options.draws_flames() && !options.weight.empty())
        throw UsageError("--weight needs a flame graph: add --svg, --pprof, --speedscope or --folded");
    if (!options.weight.empty() && !find_weight(options.weight))
        throw UsageError(fmt::format("unknown --weight '{}'{} (known: {})", options.weight,
                                     suggestion(options.weight, weight_names()), weight_names()));
    if (options.folded && options.json)
        throw UsageError("--folded and --json cannot be combined");
}

std::unique_ptr<Output> make_folded_output(const Options& options)
{
    return std::make_unique<FoldedOutput>(options);
}

SideOutput make_flames_output(const Options& options)
{
    auto output = std::make_unique<FlamesOutput>(options);
    const FlamesOutput& written = *output;
    return {std::move(output), [&written] { written.check(); }};
}

} // namespace gpusnoop
