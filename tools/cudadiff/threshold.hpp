// SPDX-License-Identifier: Apache-2.0
// A condition of --fail-if: "launches>+10%" is met if launches grew by more than 10%.
#pragma once

#include "tools/cudadiff/comparison.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop::cudadiff {

struct Threshold {
    std::string text; // as given by the user
    std::string measure;
    bool above = true;  // true: met if the change is above the limit; false: below
    double share = 0.1; // the limit, relative to A

    // Throws UsageError.
    static Threshold parse(std::string_view text);

    // Returns a sentence for each group that meets the condition. Throws Error if that cannot be decided.
    std::vector<std::string> failures(const Comparison& comparison) const;
};

} // namespace gpusnoop::cudadiff
