// SPDX-License-Identifier: Apache-2.0
#include "metrics/metrics.hpp"

#include "output/output_buffer.hpp"
#include "util/clock.hpp"
#include "util/error.hpp"
#include "util/options.hpp"
#include "util/write_all.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {
namespace {

class MetricsOutput final : public Output {
public:
    explicit MetricsOutput(Metrics& metrics) : metrics_(metrics) {}

    void begin_table(std::span<const Column>, uint64_t wall_ns, uint64_t) override
    {
        metrics_.page().begin_rows(clock_ns(CLOCK_MONOTONIC), wall_ns);
    }
    void row(std::span<const Column> columns, const Row& row, ExtraLines) override
    {
        metrics_.page().add(columns, row);
    }
    void end_report(const Sentence&, uint64_t) override
    {
        metrics_.page().end_report();
        metrics_.publish();
    }
    void lost(std::span<const Loss> losses) override { warn_of(losses); }
    void flush() override {}
    Output* for_people() override { return nullptr; }
    Output* for_programs() override { return this; }

private:
    Metrics& metrics_;
};

} // namespace

void add_metrics_options(CommandLine& line, MetricsOptions& options)
{
    line.text("--textfile", "FILE.prom", "metrics for node_exporter's textfile collector, in place of tables",
              options.textfile);
    line.text("--listen", "[ADDR:]PORT", "metrics for Prometheus at /metrics (of 127.0.0.1), in place of tables",
              options.listen);
}

Metrics::Metrics(const MetricsOptions& options, std::string_view tool, std::string_view version)
    : page_(tool, version), file_(options.textfile)
{
    if (!file_.empty() && !file_.ends_with(".prom"))
        throw UsageError(fmt::format("--textfile '{}' must end in .prom: node_exporter reads no others", file_));
    if (!options.listen.empty())
        server_.emplace(options.listen);
    const std::string text = page_.text();
    if (!file_.empty())
        write_file(text);
    if (server_)
        server_->publish(text);
}

Metrics::~Metrics()
{
    if (!file_.empty())
        unlink(file_.c_str());
}

void Metrics::serve(Loop& loop)
{
    if (!server_)
        return;
    loop.watch(server_->descriptor(), [this] { server_->ready(clock_ns(CLOCK_MONOTONIC)); });
    loop.every(std::chrono::seconds(1), [this] { server_->tick(clock_ns(CLOCK_MONOTONIC)); });
    say(fmt::format("Metrics are at http://{}/metrics\n", server_->address()));
    if (!server_->is_local())
        warn("whoever reaches that port can read them: names of pods, containers and what else --by says");
}

void Metrics::publish()
{
    std::string text = page_.text();
    if (!file_.empty())
        try {
            write_file(text);
        } catch (const Error& error) {
            if (!std::exchange(warned_, true))
                warn(fmt::format("{}; it is tried again with each report", error.what()));
        }
    if (server_)
        server_->publish(std::move(text));
}

// Whoever reads the file has all of the old one or all of the new one. For users that are not root, like node_exporter.
void Metrics::write_file(std::string_view text) const
{
    const std::string temporary = file_ + ".new"; // which no collector takes for one of its files, *.prom
    unlink(temporary.c_str());                    // of a run that was killed
    const Fd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (file && fchmod(file.get(), 0644) == 0 && write_all(file.get(), text) &&
        rename(temporary.c_str(), file_.c_str()) == 0)
        return;
    const int error = errno;
    unlink(temporary.c_str());
    throw Error(fmt::format("the file '{}' cannot be written: {}", file_, errno_text(error)),
                "its folder has to be there, and is one of node_exporter's (--collector.textfile.directory)");
}

std::unique_ptr<Output> make_metrics_output(Metrics& metrics)
{
    return std::make_unique<MetricsOutput>(metrics);
}

} // namespace gpusnoop
