// SPDX-License-Identifier: Apache-2.0
// The table of cudatop's own columns.
#pragma once

#include "tools/cudatop/columns.hpp"

#include <span>
#include <string_view>

namespace gpusnoop::cudatop {

// Outputs that show a column by default. batch: on the screen and in tables (-b), which have room for 100 characters.
enum class Usual : uint8_t { no, screen, batch };

struct TopField {
    Field<Context, Key, Group> field;
    std::string_view about;
    Usual usual = Usual::batch;
    bool adds = true;            // a sum over rows makes sense
    std::string_view needs = {}; // the option that enables it
    bool device_side = false;    // as in TopColumn, like the next two
    bool by_severity = false;
    bool bad = false;
};

std::span<const TopField> own_fields();

} // namespace gpusnoop::cudatop
