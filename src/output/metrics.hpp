// SPDX-License-Identifier: Apache-2.0
// Reports as metrics: in a file that node_exporter's textfile collector reads, behind a port, or both.
#pragma once

#include "base/loop.hpp"
#include "base/options.hpp"
#include "base/output_path.hpp"
#include "output/metrics_page.hpp"
#include "output/metrics_server.hpp"
#include "rows/output.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

class Metrics {
public:
    // Throws UsageError and Error as MetricsServer does, and where the file cannot be written.
    Metrics(const MetricsOptions& options, std::string_view tool, std::string_view version);
    ~Metrics(); // the file goes: nobody would see that its figures are old
    Metrics(const Metrics&) = delete;
    Metrics& operator=(const Metrics&) = delete;

    MetricsPage& page() { return page_; }
    // Whoever asks is answered from now on, and where that is, is said.
    void serve(Loop& loop);
    // As the page is now. A file that cannot be written is warned of once.
    void publish();
    // Throws Error if the file could not be written last.
    void check() const;

private:
    void write_file(std::string_view text) const; // throws Error

    MetricsPage page_;
    std::optional<OutputPath> file_;
    std::optional<MetricsServer> server_;
    bool warned_ = false;
    std::optional<std::string> failure_;
};

// Rows of reports go to its page, and that is published with the end of each. Nothing goes to standard output.
std::unique_ptr<Output> make_metrics_output(Metrics& metrics);

} // namespace gpusnoop
