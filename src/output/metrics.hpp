// SPDX-License-Identifier: Apache-2.0
// Prometheus metrics output: a file for node_exporter's textfile collector, an HTTP server, or both.
#pragma once

#include "base/loop.hpp"
#include "base/options.hpp"
#include "base/output_path.hpp"
#include "output/metrics_page.hpp"
#include "output/metrics_server.hpp"
#include "rows/output.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

// Collects rows in a metrics page, and publishes the page at the end of each report. Writes nothing to stdout.
class Metrics final : public Output {
public:
    // Throws the same errors as MetricsServer, and Error if the file cannot be written.
    Metrics(const MetricsOptions& options, std::string_view tool, std::string_view version);
    ~Metrics() override; // removes the file, since its values would be stale
    Metrics(const Metrics&) = delete;
    Metrics& operator=(const Metrics&) = delete;

    // Starts to answer requests, and prints the address.
    void serve(Loop& loop);

    void begin_table(std::span<const Column> columns, uint64_t wall_ns, uint64_t interval_ns) override;
    void row(std::span<const Column> columns, const Row& row, ExtraLines below) override;
    void end_report(const Sentence& nothing, uint64_t wall_ns) override;
    void lost(std::span<const Loss> losses) override;
    void end(uint64_t duration_ns) override; // throws Error if the last write of the file failed
    void flush() override {}
    Output* for_people() override { return nullptr; }
    Output* for_programs() override { return this; }

private:
    void publish();                               // if the file cannot be written, warns once
    void write_file(std::string_view text) const; // throws Error

    MetricsPage page_;
    std::optional<OutputPath> file_;
    std::optional<MetricsServer> server_;
    bool warned_ = false;
    std::optional<std::string> failure_;
};

} // namespace gpusnoop
