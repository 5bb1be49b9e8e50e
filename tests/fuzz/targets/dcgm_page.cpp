// SPDX-License-Identifier: Apache-2.0
// Metrics page of dcgm-exporter, and the HTTP response around it. Any local program may listen on its port.
#include "tests/fuzz/target.hpp"
#include "tools/gpuspend/dcgm.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    const LoopbackResponse response = http_body(input);
    expect(response.text.empty() || response.error.empty(), "there is a body or an error, not both");
    const DcgmPage page = parse_dcgm_page(input);
    expect(page.devices.size() <= DcgmPage::max_devices && page.unusable <= 2 * page.series, "the page is bounded");
    for (const auto& [key, gauges] : page.devices) {
        expect(!key.uuid.empty() && key.uuid.size() <= 256, "each value belongs to a device");
        for (const Figure figure :
             {Figure::sm_active, Figure::sm_occupancy, Figure::tensor_active, Figure::dram_active, Figure::gpu_busy})
            expect(gauges.values[static_cast<size_t>(figure)].value_or(0) <= 1'000'000, "a ratio is at most 1");
    }
}
