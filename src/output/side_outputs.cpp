// SPDX-License-Identifier: Apache-2.0
#include "output/side_outputs.hpp"

#include "rows/output.hpp"

#include <exception>
#include <utility>

namespace gpusnoop {

namespace {

// Forwards all calls to several outputs, except banner() and end_report(), which are for people only.
class OutputGroup : public Output {
public:
    void start(std::string_view tool, std::string_view version, std::optional<uint64_t> floor_ns) override
    {
        each([&](Output& one) { one.start(tool, version, floor_ns); });
    }
    void attached(uint64_t functions, uint64_t files, std::string_view tier, ExtraLines remarks) override
    {
        each([&](Output& one) { one.attached(functions, files, tier, remarks); });
    }
    void begin_table(std::span<const Column> columns, uint64_t wall_ns, uint64_t interval_ns) override
    {
        each([&](Output& one) { one.begin_table(columns, wall_ns, interval_ns); });
    }
    void row(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        each([&](Output& one) { one.row(columns, row, below); });
    }
    void event(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        each([&](Output& one) { one.event(columns, row, below); });
    }
    void process(std::span<const Column> columns, const Row& row) override
    {
        each([&](Output& one) { one.process(columns, row); });
    }
    void histogram(std::string_view title, std::string_view unit, const Histogram& histogram,
                   std::span<const std::pair<std::string_view, Cell>> fields, uint64_t wall_ns,
                   const BucketNotes& notes) override
    {
        each([&](Output& one) { one.histogram(title, unit, histogram, fields, wall_ns, notes); });
    }
    void lost(std::span<const Loss> losses) override
    {
        each([&](Output& one) { one.lost(losses); });
    }
    void end(uint64_t duration_ns) override
    {
        each([&](Output& one) { one.end(duration_ns); });
    }
    void flush() override
    {
        each([](Output& one) { one.flush(); });
    }
    void give_up_when(GivesUp gives_up) override
    {
        each([&](Output& one) { one.give_up_when(gives_up); });
    }

protected:
    std::vector<Output*> all_; // in the order in which they are called

private:
    template<class Do>
    void each(const Do& action)
    {
        for (Output* const one : all_)
            action(*one);
    }
};

// All side outputs combined. Their files are for programs, not for people.
class SideOutputs final : public OutputGroup {
public:
    explicit SideOutputs(std::vector<SideOutput> sides) : sides_(std::move(sides))
    {
        for (const SideOutput& one : sides_)
            all_.push_back(one.output.get());
    }

    Output* for_people() override { return nullptr; }
    Output* for_programs() override { return this; }

    void check() const
    {
        for (const SideOutput& one : sides_)
            if (one.check)
                one.check();
    }

private:
    std::vector<SideOutput> sides_;
};

class OutputWithSides final : public OutputGroup {
public:
    OutputWithSides(std::unique_ptr<Output> shown, std::vector<SideOutput> sides)
        : shown_(std::move(shown)), sides_(std::move(sides))
    {
        // side outputs come first, because the shown output throws if the reader of stdout has closed the pipe
        all_ = {&sides_, shown_.get()};
    }

    // If the shown output is for people (text), only the side outputs are for programs. Otherwise, all outputs are for
    // programs.
    Output* for_people() override { return shown_->for_people(); }
    Output* for_programs() override { return shown_->for_people() ? static_cast<Output*>(&sides_) : this; }
    void banner(std::string_view text) override { shown_->banner(text); }
    void end_report(const Sentence& nothing, uint64_t wall_ns) override { shown_->end_report(nothing, wall_ns); }

    void end(uint64_t duration_ns) override
    {
        OutputGroup::end(duration_ns);
        flush();
        sides_.check();
    }

private:
    std::unique_ptr<Output> shown_;
    SideOutputs sides_;
};

} // namespace

std::unique_ptr<Output> make_output_with_sides(std::unique_ptr<Output> shown, std::vector<SideOutput> sides)
{
    if (sides.empty())
        return shown;
    return std::make_unique<OutputWithSides>(std::move(shown), std::move(sides));
}

namespace {

class SilentOutput : public Output {
public:
    void banner(std::string_view) override {}
    void row(std::span<const Column>, const Row&, ExtraLines) override {}
    void lost(std::span<const Loss>) override {}
    void flush() override {}
};

} // namespace

std::unique_ptr<Output> make_silent_output()
{
    return std::make_unique<SilentOutput>();
}

} // namespace gpusnoop
