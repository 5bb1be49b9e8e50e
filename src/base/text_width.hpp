// SPDX-License-Identifier: Apache-2.0
// Columns that characters take on a terminal.
#pragma once

namespace gpusnoop {

// 0: it joins or changes the character before it; 2: wide, as in East Asian scripts; negative: it cannot be shown. As
// wcwidth() has it in a locale of UTF-8, whatever the environment's is.
int columns_of(char32_t code);

// Joiners, variation selectors, tags: terminals disagree on what they do to the characters around them.
bool is_invisible(char32_t code);

} // namespace gpusnoop
