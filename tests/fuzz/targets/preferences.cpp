// SPDX-License-Identifier: Apache-2.0
// Saved screen settings, possibly edited by hand or damaged.
#include "screen/preferences.hpp"
#include "base/error.hpp"
#include "tests/fuzz/target.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    try {
        const Preferences found = preferences_in(input);
        expect(!found.columns || !found.columns->shown.empty(), "at least one column is shown");
        expect(!found.interval || interval_of(std::chrono::duration<double>(*found.interval).count()),
               "the interval is valid");
        expect(preferences_in(preferences_text(found)) == found, "the settings survive a round trip");
    } catch (const Error& error) {
        expect(std::string_view(error.what()).size() < 200, "the error message is short");
    }
}
