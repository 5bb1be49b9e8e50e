// SPDX-License-Identifier: Apache-2.0
#include "output/trace_output.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/result_file.hpp"
#include "base/text.hpp"
#include "output/deflate.hpp"
#include "output/trace_event.hpp"

#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string_view>

namespace gpusnoop {
namespace {

constexpr std::string_view begin_of_trace = R"([{"name":"gpusnoop")";
constexpr std::string_view begin_of_packed = "\x1f\x8b\x08"; // RFC 1952
constexpr size_t write_above = 256 << 10;

class TraceOutput final : public Output {
public:
    explicit TraceOutput(const std::string& path)
        : packer_(path.ends_with(".gz") ? std::make_unique<Deflate>() : nullptr),
          file_(path, packer_ ? begin_of_packed : begin_of_trace, "trace")
    {}

    Output* for_people() override { return nullptr; }
    Output* for_programs() override { return this; }

    void start(std::string_view tool, std::string_view version, std::optional<uint64_t>) override
    {
        events_.emplace(tool, clock_ns(CLOCK_REALTIME), clock_ns(CLOCK_MONOTONIC));
        const RunIdentity run = this_run();
        text_ = begin_of_trace;
        text_ += R"(,"ph":"M","pid":0,"tid":0,"args":{"version":)";
        append_json_string(text_, version);
        text_ += R"(,"host":)";
        append_json_string(text_, run.host);
        text_ += R"(,"command_line":)";
        append_json_string(text_, run.command);
        text_ += fmt::format(R"(,"baseTimeNanoseconds":{}}}}},)"
                             "\n",
                             events_->base_ns());
        write();
    }

    void row(std::span<const Column>, const Row&, ExtraLines) override {}
    void event(std::span<const Column> columns, const Row& row, ExtraLines below) override
    {
        if (failure_ || !events_)
            return;
        events_->append(text_, columns, row, below);
        if (text_.size() > write_above)
            write();
    }

    void lost(std::span<const Loss> losses) override
    {
        for (const Loss& loss : losses)
            if (loss.count && events_)
                events_->append_mark(text_, fmt::format("{} {}", loss.count, loss.text), clock_ns(CLOCK_REALTIME));
    }

    void end(uint64_t) override
    {
        // The last event has no comma behind it.
        text_ += R"({"name":"end","ph":"M","pid":0,"tid":0,"args":{}}])"
                 "\n";
        write();
        if (packer_ && !failure_)
            write_packed(packer_->end());
    }

    // A little at a time cannot be packed.
    void flush() override
    {
        if (!packer_)
            write();
    }

    void check() const
    {
        if (failure_)
            throw Error(*failure_);
    }

private:
    void write()
    {
        if (!failure_ && !text_.empty())
            write_packed(packer_ ? packer_->packed(text_) : text_);
        text_.clear();
    }
    // A full disk ends the trace, not the run. It is told at once.
    void write_packed(std::string_view bytes)
    try {
        file_.write(bytes);
    } catch (const Error& error) {
        failure_ = error.what();
        warn(*failure_);
    }

    std::unique_ptr<Deflate> packer_; // null: plain
    ResultFile file_;
    std::optional<TraceEvents> events_;
    std::string text_;
    std::optional<std::string> failure_;
};

} // namespace

OutputBeside make_trace_output(const std::string& path)
{
    auto output = std::make_unique<TraceOutput>(path);
    const TraceOutput& written = *output;
    return {std::move(output), [&written] { written.check(); }};
}

} // namespace gpusnoop
