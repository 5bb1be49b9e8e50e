// SPDX-License-Identifier: Apache-2.0
// How well devices are used, by a dcgm-exporter's page (--dcgm): of a service of this machine, or a file.
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

// Pages by HTTP, from services of this machine.

// What to ask for "http://localhost:9400/metrics", also with 127.0.0.1 or [::1]. Throws UsageError; option: that the
// URL was given by.
LoopbackRequest::Parameters http_request(std::string_view option, std::string_view url, size_t largest);

// The body of a whole answer; why_not where it is none.
LoopbackResponse http_body(std::string_view answer);

// A page of NVIDIA's dcgm-exporter, in Prometheus's text format: how well each device or MIG instance is used.

// Whose a figure is.
struct DcgmKey {
    std::string uuid; // the device's, also of an instance
    std::optional<uint32_t> gpu_instance;
    auto operator<=>(const DcgmKey&) const = default;
};

struct DcgmPage {
    std::map<DcgmKey, Gauges> devices;
    size_t series = 0; // of the names that are looked for
    size_t unusable =
        0; // of these: values that cannot be, without a device, of a process or differing with no way to tell

    static constexpr size_t largest = 4 << 20;
    static constexpr size_t max_devices = 4096;
};

// Never fails: what is none of it is left out.
DcgmPage parse_dcgm_page(std::string_view text);

class Dcgm {
public:
    // A URL of the loopback, or a path. Throws UsageError.
    explicit Dcgm(const std::string& where);

    // Looks again every few seconds, and waits for nothing. now_ns: CLOCK_MONOTONIC. Says once why there is nothing.
    void refresh(uint64_t now_ns);

    // nullptr: it says nothing, or what it has said is too old.
    const Gauges* of(std::string_view uuid, std::optional<uint32_t> gpu_instance) const;
    const std::string& why_not() const { return why_not_; } // it says nothing now: a sentence's end; else empty
    const std::string& where() const { return where_; }

private:
    void take(const std::string& text, uint64_t now_ns);
    void fail(std::string why);
    void read_file(uint64_t now_ns);

    std::string where_;
    std::optional<LoopbackRequest> service_;
    DcgmPage page_;
    std::string why_not_ = "it has not answered yet";
    uint64_t next_ns_ = 0, taken_ns_ = 0;
    bool complained_ = false;
};

} // namespace gpusnoop
