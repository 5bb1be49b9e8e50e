// SPDX-License-Identifier: Apache-2.0
// The table of cudatop's own columns.
#pragma once

#include "tools/cudatop/columns.hpp"

#include <span>
#include <string_view>

namespace gpusnoop::cudatop {

// Outputs that show a column by default. batch: both the screen and tables (-b). Tables show only some columns, because
// they are at most 100 characters wide.
enum class Usual : uint8_t { no, screen, batch };

struct TopField {
    Field<Context, Key, Group> field;
    std::string_view about;
    Usual usual = Usual::batch;
    bool adds = true;            // the column is included in sums
    std::string_view needs = {}; // the option that enables it
    bool device_side = false;    // see TopColumn for this and the next two members
    bool by_severity = false;
    bool bad = false;
};

std::span<const TopField> own_fields();

} // namespace gpusnoop::cudatop
