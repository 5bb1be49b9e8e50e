// SPDX-License-Identifier: Apache-2.0
// gpuspend's state file. If the input is accepted, its times add up, and writing and reading it again changes nothing.
#include "tools/gpuspend/spend_state.hpp"

#include "base/error.hpp"
#include "tests/fuzz/target.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    try {
        const SpendState state = SpendState::of(input, "f");
        const std::string text = state.text();
        expect(SpendState::of(text, "f").text() == text, "the state survives a round trip");
        for (const auto& [key, device] : state.ledger.devices()) {
            uint128 sum = device.unallocated_ns;
            for (const auto& [tenant, account] : device.tenants)
                sum += uint128{account.used_ns} + account.idle_ns;
            expect(sum == device.ns, "used, idle and unallocated time add up to the device's time");
        }
    } catch (const Error&) {}
}
