// SPDX-License-Identifier: Apache-2.0
// What cudatop shows of a row: one table, of what is its own.
#pragma once

#include "cudatop_columns.hpp"

#include <span>
#include <string_view>

namespace gpusnoop::cudatop {

struct TopField {
    Field<Key, Group, Context> field;
    std::string_view about;
    bool at_first = true;        // shown
    bool adds = true;            // rows have a sum
    std::string_view needs = {}; // to be asked for at the start
    bool device_side = false;
};

std::span<const TopField> own_fields();

} // namespace gpusnoop::cudatop
