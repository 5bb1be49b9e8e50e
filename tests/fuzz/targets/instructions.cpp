// SPDX-License-Identifier: Apache-2.0
// Placement of a probe in the code of any function.
#include "attach/placement.hpp"
#include "tests/fuzz/target.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    const std::string exact(input.substr(0, 32));
    const Placement placement = place({reinterpret_cast<const uint8_t*>(exact.data()), exact.size()});
    expect(placement.delta <= 4 * 15, "a probe is near the entry");
    expect(placement.delta == 0 || placement.delta < exact.size(), "a probe is within the code");
    expect(placement.delta == 0 || placement.emulated, "a probe only moves to an emulated instruction");
}
