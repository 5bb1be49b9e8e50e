// SPDX-License-Identifier: Apache-2.0
// Utilization of devices according to dcgm-exporter (--dcgm). Its metrics are read by HTTP from this machine, or from a
// file.
#pragma once

#include "base/loopback_request.hpp"
#include "tools/gpuspend/ledger.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

// The request for a URL such as "http://localhost:9400/metrics". The host must be localhost, 127.0.0.1 or [::1]. Throws
// UsageError, which names the option.
LoopbackRequest::Parameters http_request(std::string_view option, std::string_view url, size_t max_size);

// Extracts the body of an HTTP response. Sets `error` if the response is incomplete or not successful.
LoopbackResponse http_body(std::string_view answer);

// The device or MIG instance that a value belongs to.
struct DcgmKey {
    std::string uuid; // UUID of the device; for a MIG instance, of the device that contains it
    std::optional<uint32_t> gpu_instance;
    auto operator<=>(const DcgmKey&) const = default;
};

// Values from dcgm-exporter's metrics page, which is in Prometheus's text format.
struct DcgmPage {
    std::map<DcgmKey, Gauges> devices;
    size_t series = 0; // number of series with a known name
    // Number of these series whose values are not used, because they have no device, belong to a process, are
    // invalid or contradictory, or exceed max_devices.
    size_t unusable = 0;

    static constexpr size_t max_size = 4 << 20;
    static constexpr size_t max_devices = 4096;
};

// Ignores lines that cannot be parsed, so it never fails.
DcgmPage parse_dcgm_page(std::string_view text);

class Dcgm {
public:
    // where: the loopback URL of a dcgm-exporter, or the path of a file with its page. Throws UsageError.
    explicit Dcgm(const std::string& where);

    // Polls every few seconds, without blocking, and warns once of an error. now_ns: CLOCK_MONOTONIC.
    void refresh(uint64_t now_ns);

    // Null if there are no values, or if they are too old.
    const Gauges* of(std::string_view uuid, std::optional<uint32_t> gpu_instance) const;
    // Reason why there are no values now, worded to follow a colon; empty if there are values.
    const std::string& error() const { return error_; }
    const std::string& where() const { return where_; }

private:
    void apply(const std::string& text, uint64_t now_ns);
    void fail(std::string why);
    void read_file(uint64_t now_ns);

    std::string where_;
    std::optional<LoopbackRequest> service_;
    DcgmPage page_;
    std::string error_ = "it has not answered yet";
    uint64_t next_ns_ = 0, page_ns_ = 0;
    bool warned_ = false;
};

} // namespace gpusnoop
