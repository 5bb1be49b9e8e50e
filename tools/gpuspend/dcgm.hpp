// SPDX-License-Identifier: Apache-2.0
// How well devices are used, by a dcgm-exporter's page (--dcgm): of a service of this machine, or a file.
#pragma once

#include "base/loopback_question.hpp"
#include "tools/gpuspend/dcgm_page.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

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
    std::optional<LoopbackQuestion> service_;
    DcgmPage page_;
    std::string why_not_ = "it has not answered yet";
    uint64_t next_ns_ = 0, taken_ns_ = 0;
    bool complained_ = false;
};

} // namespace gpusnoop
