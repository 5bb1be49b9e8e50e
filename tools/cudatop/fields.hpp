// SPDX-License-Identifier: Apache-2.0
// What cudatop shows of a row: one table, of what is its own.
#pragma once

#include "tools/cudatop/columns.hpp"

#include <span>
#include <string_view>

namespace gpusnoop::cudatop {

// Where a column is shown that nobody asked for: a table of text (-b) has room for 100 characters, and a screen for
// more.
enum class Usual : uint8_t { no, screen, batch };

struct TopField {
    Field<Context, Key, Group> field;
    std::string_view about;
    Usual usual = Usual::batch;
    bool adds = true;            // rows have a sum
    std::string_view needs = {}; // to be asked for at the start
    bool device_side = false;
    bool by_severity = false; // as of columns
    bool bad = false;
};

std::span<const TopField> own_fields();

} // namespace gpusnoop::cudatop
