// SPDX-License-Identifier: Apache-2.0
// A key: the character it types or, past the last code point, one of these.
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

// Of the mouse, with the cell that it points at.
struct Click {
    enum Kind { press, wheel_up, wheel_down };
    Kind kind = press;
    int x = 0;
    int y = 0;
};

Key key_of(const Click& click); // past all other keys; of a cell below 4096, 4096
std::optional<Click> click_of(Key key);

// What was typed at once, without the escape sequences (ECMA-48 CSI, SS3) of keys that are not known: their letters and
// digits are no keys.
std::vector<Key> without_sequences(const std::vector<Key>& typed);

// What a piece of the screen is, not how it looks: a theme gives it colours or, without any, bold and underline.
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

// Keys that are typed while this process cannot read them: the kernel's verifier has it for up to a second.

// No Reader: there is no question, since the helper acts by itself while this process is in a system call, and none
// that could replace it. A helper reads the terminal, keeps what is typed, and sends SIGINT for a key that quits. A
// process, since the key is to be taken within a system call; not a tty's VINTR, since that signals whoever started
// this process, too.
class TypedAhead {
public:
    static constexpr size_t max_bytes = 100; // bytes; the terminal keeps the rest. ncurses takes 137 back (6.4)

    explicit TypedAhead(int terminal);
    std::string end(); // the terminal is this process's again; what was typed until then

private:
    Helper helper_;
};

// What was typed at once ends a screen that shows its list: a q (or F10) before any key that leads elsewhere.
bool quits(std::string_view typed);

} // namespace gpusnoop
