// SPDX-License-Identifier: Apache-2.0
#include "recording/recorded_output.hpp"

namespace gpusnoop {
namespace {

class RecordedOutput final : public Output {
public:
    RecordedOutput(std::unique_ptr<Output> shown, std::unique_ptr<RecordingFile> file)
        : shown_(std::move(shown)), file_(*file), recording_(make_json_output(this_run(), std::move(file)))
    {}

    // Where JSON is shown, programs read both, and people neither.
    Output* for_people() override { return shown_->for_people(); }
    Output* for_programs() override { return shown_->for_people() ? recording_.get() : this; }
    void give_up_when(GivesUp gives_up) override { shown_->give_up_when(std::move(gives_up)); }
    void banner(std::string_view text) override { shown_->banner(text); }
    void end_report(const Sentence& nothing, uint64_t wall_ns) override { shown_->end_report(nothing, wall_ns); }

    void start(std::string_view tool, std::string_view version, std::optional<uint64_t> floor_ns) override
    {
        recording_->start(tool, version, floor_ns);
        shown_->start(tool, version, floor_ns);
    }
    void attached(uint64_t functions, uint64_t files, std::string_view tier, ExtraLines remarks) override
    {
        recording_->attached(functions, files, tier, remarks);
        shown_->attached(functions, files, tier, remarks);
    }
    void begin_table(std::span<const Column> columns, uint64_t wall_ns, uint64_t interval_ns) override
    {
        recording_->begin_table(columns, wall_ns, interval_ns);
        shown_->begin_table(columns, wall_ns, interval_ns);
    }
    void row(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        recording_->row(columns, row, below);
        shown_->row(columns, row, below);
    }
    void event(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        recording_->event(columns, row, below);
        shown_->event(columns, row, below);
    }
    void histogram(std::string_view title, std::string_view unit, const Histogram& histogram,
                   std::span<const std::pair<std::string_view, Cell>> fields, uint64_t wall_ns,
                   const BucketNotes& notes) override
    {
        recording_->histogram(title, unit, histogram, fields, wall_ns, notes);
        shown_->histogram(title, unit, histogram, fields, wall_ns, notes);
    }
    void lost(std::span<const Loss> losses) override
    {
        recording_->lost(losses);
        shown_->lost(losses);
    }

    void end(uint64_t duration_ns) override
    {
        recording_->end(duration_ns);
        shown_->end(duration_ns);
        flush();
        if (file_.failure())
            throw Error(*file_.failure());
    }

    // What is shown may find nobody who reads it.
    void flush() override
    {
        recording_->flush();
        shown_->flush();
    }

private:
    std::unique_ptr<Output> shown_;
    RecordingFile& file_;
    std::unique_ptr<Output> recording_;
};

} // namespace

std::unique_ptr<Output> make_recorded_output(std::unique_ptr<Output> shown, std::unique_ptr<RecordingFile> file)
{
    return std::make_unique<RecordedOutput>(std::move(shown), std::move(file));
}

} // namespace gpusnoop
