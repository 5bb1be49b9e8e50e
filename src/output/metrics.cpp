// SPDX-License-Identifier: Apache-2.0
#include "output/metrics.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/options.hpp"
#include "output/output_buffer.hpp"

#include <fmt/format.h>
#include <utility>

namespace gpusnoop {

Metrics::Metrics(const MetricsOptions& options, std::string_view tool, std::string_view version) : page_(tool, version)
{
    if (!options.textfile.empty() && !options.textfile.ends_with(".prom"))
        throw UsageError(fmt::format("--textfile '{}' must end in .prom, because node_exporter ignores other files",
                                     options.textfile));
    if (!options.listen.empty())
        server_.emplace(options.listen);
    const std::string text = page_.text();
    if (!options.textfile.empty()) {
        file_.emplace(options.textfile, "metrics file", "# HELP gpusnoop_");
        write_file(text);
    }
    if (server_)
        server_->publish(text);
}

Metrics::~Metrics()
{
    if (file_)
        file_->remove();
}

void Metrics::serve(Loop& loop)
{
    if (!server_)
        return;
    loop.watch(server_->descriptor(), [this] { server_->ready(clock_ns(CLOCK_MONOTONIC)); });
    loop.every(std::chrono::seconds(1), [this] { server_->tick(clock_ns(CLOCK_MONOTONIC)); });
    print_stderr(fmt::format("Metrics are at http://{}/metrics\n", server_->address()));
    if (!server_->is_local())
        warn("any host that can reach this port can read the metrics, including names of pods and containers");
}

void Metrics::begin_table(std::span<const Column>, uint64_t wall_ns, uint64_t)
{
    page_.begin_rows(clock_ns(CLOCK_MONOTONIC), wall_ns);
}

void Metrics::row(std::span<const Column> columns, const Row& row, ExtraLines)
{
    page_.add(columns, row);
}

void Metrics::end_report(const Sentence&, uint64_t)
{
    page_.end_report();
    publish();
}

void Metrics::lost(std::span<const Loss> losses)
{
    warn_of(losses);
}

void Metrics::end(uint64_t)
{
    if (failure_)
        throw Error(*failure_);
}

void Metrics::publish()
{
    std::string text = page_.text();
    if (file_)
        try {
            write_file(text);
            failure_.reset();
        } catch (const Error& error) {
            failure_ = error.what();
            if (!std::exchange(warned_, true))
                warn(fmt::format("{}; retrying with each report", error.what()));
        }
    if (server_)
        server_->publish(std::move(text));
}

// The file is readable by all users, because node_exporter does not run as root.
void Metrics::write_file(std::string_view text) const
{
    file_->replace(text, 0644, Durable::no);
}

} // namespace gpusnoop
