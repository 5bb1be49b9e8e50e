// SPDX-License-Identifier: Apache-2.0
// Keys and mouse clicks of a screen. A key is the character it types or, beyond the last code point, one of these.
#pragma once

#include "reader/helper.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

using Key = char32_t;

namespace key {

inline constexpr Key enter = U'\r';
inline constexpr Key escape = 0x1b;
inline constexpr Key clear_line = 0x15; // Ctrl-U
inline constexpr Key repaint = 0x0c;    // Ctrl-L

enum : Key {
    backspace = 0x110000,
    up,
    down,
    left,
    right,
    page_up,
    page_down,
    home,
    end,
    f1,
    f2,
    f3,
    f4,
    f5,
    f6,
    f7,
    f8,
    f9,
    f10,
    f11,
    f12,
};

} // namespace key

// A mouse event at a cell.
struct Click {
    enum Kind { press, wheel_up, wheel_down };
    Kind kind = press;
    int x = 0;
    int y = 0;
};

Key key_of(const Click& click); // encodes the event as a key beyond all others; x, y: below 4096
std::optional<Click> click_of(Key key);

// Removes escape sequences (ECMA-48 CSI, SS3) of unknown keys, whose letters and digits must not act as keys.
std::vector<Key> without_sequences(const std::vector<Key>& typed);

// Role of a part of the screen. A theme maps it to colours or, without colours, to bold and underline.
enum class Style : uint8_t {
    plain,
    dim,      // labels, unknown values
    title,    // the first line, titles of parts
    header,   // column headers
    sorted,   // header of the sort column
    device,   // figures of the GPU's own counters
    selected, // the row that keys act on
    branch,   // a heading in the tree
    total,    // the sum line
    alarm,    // something is lost or wrong
    warning,  // something is inefficient
    notice,   // a message in the footer, a state to be aware of
    bar,      // the filled part of a bar, a plot
    hint,     // a key in the footer
    count     // number of styles
};

// Style for a severity of problems.
constexpr Style style_of(int severity)
{
    return severity >= 3 ? Style::alarm : severity == 2 ? Style::warning : Style::plain;
}

// Reads keys that are typed while this process is in the kernel's verifier for up to a second. A helper process reads
// the terminal, keeps the keys, and sends SIGINT for a key that quits. It needs a process because this one is in a
// system call. The tty's VINTR would not do, as it would also signal the program that started this process.
class TypedAhead {
public:
    static constexpr size_t max_bytes = 100; // ncurses (6.4) accepts 137 in put_back(); the terminal keeps the rest

    explicit TypedAhead(int terminal);
    std::string end(); // stops reading; returns the keys typed so far

private:
    Helper helper_;
};

// True if these keys quit a screen that shows its list: q (or F10), before any key that leaves the list.
bool quits(std::string_view typed);

} // namespace gpusnoop
