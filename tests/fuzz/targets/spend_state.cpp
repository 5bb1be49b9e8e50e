// SPDX-License-Identifier: Apache-2.0
// The state of a run of gpuspend: whatever is taken adds up, and is written as it was read.
#include "tools/gpuspend/spend_state.hpp"

#include "base/error.hpp"
#include "tests/fuzz/target.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    try {
        const SpendState state = SpendState::of(input, "f");
        const std::string text = state.text();
        expect(SpendState::of(text, "f").text() == text, "what is taken can be told again");
        for (const auto& [key, device] : state.ledger.devices()) {
            uint128 sum = device.unallocated_ns;
            for (const auto& [tenant, account] : device.tenants)
                sum += uint128{account.used_ns} + account.idle_ns;
            expect(sum == device.ns, "the parts of a device's time are its time");
        }
    } catch (const Error&) {}
}
