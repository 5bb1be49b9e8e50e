// SPDX-License-Identifier: Apache-2.0
// What a piece of the screen is, not how it looks: a theme gives it colours or, without any, bold and underline.
#pragma once

#include <cstdint>

namespace gpusnoop {

enum class Style : uint8_t {
    plain,
    dim,      // labels, what is not known
    title,    // the first line, titles of parts
    header,   // of a column
    sorted,   // the header of the column that rows are sorted by
    device,   // figures of the GPU's own counters
    selected, // the row that keys act on
    branch,   // a heading in the tree
    total,    // the sum line
    alarm,    // something is lost or wrong
    warning,  // or costs more than it should
    notice,   // a message in the footer, a state to be aware of
    bar,      // the filled part of a bar, a plot
    hint,     // a key in the footer
    count     // how many there are
};

// Of what is wrong with a row, by how much.
constexpr Style style_of(int severity)
{
    return severity >= 3 ? Style::alarm : severity == 2 ? Style::warning : Style::plain;
}

} // namespace gpusnoop
