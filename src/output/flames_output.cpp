// SPDX-License-Identifier: Apache-2.0
#include "output/flames_output.hpp"

#include "base/clock.hpp"
#include "base/result_file.hpp"
#include "base/suggestion.hpp"
#include "base/text.hpp"
#include "output/flame_stack.hpp"
#include "output/forms.hpp"
#include "output/output_buffer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <vector>

namespace gpusnoop {
namespace {

class FlamesOutput : public Output {
public:
    explicit FlamesOutput(const Options& options)
    {
        if (!options.weight.empty())
            asked_ = find_weight(options.weight);
        for (const auto& [option, path] : options.flames)
            for (const FlameForm& form : flame_forms())
                if (form.option == option)
                    files_.push_back({&form, ResultFile(path, form.begin, "flame graph")});
    }

    // All rows are wanted, not as many as people read.
    Output* for_people() override { return nullptr; }
    Output* for_programs() override { return this; }

    void start(std::string_view tool, std::string_view version, std::optional<uint64_t>) override
    {
        tool_ = tool;
        version_ = version;
        began_wall_ns_ = clock_ns(CLOCK_REALTIME);
    }

    // What is held is what the last table says; what has happened, all of them together.
    void begin_table(std::span<const Column> columns, uint64_t, uint64_t) override
    {
        take_weight(columns, usual_weight(columns));
        const size_t at = weight_ ? column_of(columns, weight_->key) : columns.size();
        if (at < columns.size() && columns[at].is_level)
            stacks_.clear_weights();
    }
    void row(std::span<const Column> columns, const Row& row, ExtraLines below) override { add(columns, row, below); }
    void event(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        take_weight(columns, usual_line_weight(columns));
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
        const std::string missing = what_is_missing();
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
        if (!weight_ && asked_)
            failure_ = fmt::format("no row has '{}' to weigh stacks by (--weight)", asked_->key);
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
    // The first rows decide: what is added up is one thing.
    void take_weight(std::span<const Column> columns, const Weight* usual)
    {
        if (weight_)
            return;
        if (!asked_)
            weight_ = usual;
        else if (column_of(columns, asked_->key) < columns.size())
            weight_ = asked_;
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

    std::string what_is_missing() const
    {
        std::vector<std::string> all;
        if (lost_)
            all.push_back(fmt::format("{} calls or lines were lost", lost_));
        if (unknown_)
            all.push_back(fmt::format("{} rows have no {}", unknown_, weight_->text));
        if (stacks_.cut())
            all.push_back(fmt::format("{} stacks are cut off: there are too many", stacks_.cut()));
        return joined(all, "; ");
    }

    struct File {
        const FlameForm* form;
        ResultFile file;
    };

    const Weight* asked_ = nullptr;
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
        throw UsageError("--weight is about flame graphs: add --svg, --pprof, --speedscope or --folded");
    if (!options.weight.empty() && !find_weight(options.weight))
        throw UsageError(fmt::format("--weight takes the name of something that adds up, not '{}'{}: {}",
                                     options.weight, suggestion(options.weight, weight_names()), weight_names()));
    if (options.folded && options.json)
        throw UsageError("--folded has lines of its own: leave out --json");
}

std::unique_ptr<Output> make_folded_output(const Options& options)
{
    return std::make_unique<FoldedOutput>(options);
}

OutputBeside make_flames_output(const Options& options)
{
    auto output = std::make_unique<FlamesOutput>(options);
    const FlamesOutput& written = *output;
    return {std::move(output), [&written] { written.check(); }};
}

} // namespace gpusnoop
