// SPDX-License-Identifier: Apache-2.0
// Reports as metrics: in a file that node_exporter's textfile collector reads, behind a port, or both.
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

// Rows of reports go to its page, and that is published with the end of each. Nothing goes to standard output.
class Metrics final : public Output {
public:
    // Throws UsageError and Error as MetricsServer does, and where the file cannot be written.
    Metrics(const MetricsOptions& options, std::string_view tool, std::string_view version);
    ~Metrics() override; // removes the file: its figures would go stale unnoticed
    Metrics(const Metrics&) = delete;
    Metrics& operator=(const Metrics&) = delete;

    // Whoever asks is answered from now on, and where that is, is said.
    void serve(Loop& loop);

    void begin_table(std::span<const Column> columns, uint64_t wall_ns, uint64_t interval_ns) override;
    void row(std::span<const Column> columns, const Row& row, ExtraLines below) override;
    void end_report(const Sentence& nothing, uint64_t wall_ns) override;
    void lost(std::span<const Loss> losses) override;
    void end(uint64_t duration_ns) override; // throws Error if the file could not be written last
    void flush() override {}
    Output* for_people() override { return nullptr; }
    Output* for_programs() override { return this; }

private:
    void publish();                               // a file that cannot be written is warned of once
    void write_file(std::string_view text) const; // throws Error

    MetricsPage page_;
    std::optional<OutputPath> file_;
    std::optional<MetricsServer> server_;
    bool warned_ = false;
    std::optional<std::string> failure_;
};

} // namespace gpusnoop
