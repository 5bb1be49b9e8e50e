// SPDX-License-Identifier: Apache-2.0
// What must not have changed: "launches>+10%" is crossed where there are more than that.
#pragma once

#include "tools/cudadiff/comparison.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop::cudadiff {

struct Threshold {
    std::string text; // as it was given
    std::string measure;
    bool above = true;  // it is crossed above the limit, else below it
    double share = 0.1; // the limit, as a part of what A has

    // Throws UsageError.
    static Threshold parse(std::string_view text);

    // Where it is crossed, in sentences. Throws Error where that cannot be told.
    std::vector<std::string> crossed(const Comparison& comparison) const;
};

} // namespace gpusnoop::cudadiff
