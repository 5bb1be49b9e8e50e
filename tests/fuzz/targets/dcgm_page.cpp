// SPDX-License-Identifier: Apache-2.0
// A dcgm-exporter's page, and the answer that it comes in, from whoever listens there.
#include "tests/fuzz/target.hpp"
#include "tools/gpuspend/dcgm.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    const LoopbackResponse answer = http_body(input);
    expect(answer.text.empty() || answer.error.empty(), "there is a body, or why not");
    const DcgmPage page = parse_dcgm_page(input);
    expect(page.devices.size() <= DcgmPage::most_devices && page.unusable <= 2 * page.series, "a page has bounds");
    for (const auto& [key, gauges] : page.devices) {
        expect(!key.uuid.empty() && key.uuid.size() <= 256, "a figure is of a device");
        for (const Figure figure :
             {Figure::sm_active, Figure::sm_occupancy, Figure::tensor_active, Figure::dram_active, Figure::gpu_busy})
            expect(gauges.values[static_cast<size_t>(figure)].value_or(0) <= 1'000'000, "a part is no more than all");
    }
}
