// SPDX-License-Identifier: Apache-2.0
// A page of NVIDIA's dcgm-exporter, in Prometheus's text format: how well each device or MIG instance is used.
#pragma once

#include "tools/gpuspend/efficiency.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

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
    static constexpr size_t most_devices = 4096;
};

// Never fails: what is none of it is left out.
DcgmPage parse_dcgm_page(std::string_view text);

} // namespace gpusnoop
