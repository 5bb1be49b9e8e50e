// SPDX-License-Identifier: Apache-2.0
// A file of what keys chose, which somebody has written by hand, or damaged.
#include "screen/preferences.hpp"
#include "base/error.hpp"
#include "tests/fuzz/target.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    try {
        const Preferences found = preferences_in(input);
        expect(!found.columns || !found.columns->shown.empty(), "something is shown");
        expect(!found.interval || interval_of(std::chrono::duration<double>(*found.interval).count()),
               "an interval is one that a screen can have");
        expect(preferences_in(preferences_text(found)) == found, "what is written reads the same");
    } catch (const Error& error) {
        expect(std::string_view(error.what()).size() < 200, "what is wrong is a sentence");
    }
}
