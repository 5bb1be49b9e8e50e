// SPDX-License-Identifier: Apache-2.0
// Keys and mouse events of a screen. For a key that types a character, a Key is that character's code point. For other
// keys, it is a value above all code points.
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

// A mouse event at a character cell.
struct Click {
    enum Kind { press, wheel_up, wheel_down };
    Kind kind = press;
    int x = 0;
    int y = 0;
};

// Encodes a mouse event as a Key. The value is greater than those of all keyboard keys. x and y must be below 4096.
Key key_of(const Click& click);
std::optional<Click> click_of(Key key);

// Removes the escape sequences (ECMA-48 CSI, SS3) of unknown keys, so that their letters and digits do not act as keys.
std::vector<Key> without_sequences(const std::vector<Key>& typed);

// Role of a text on the screen. A theme maps each role to colours or, on terminals without colours, to bold or
// underlined text.
enum class Style : uint8_t {
    plain,
    dim,      // labels, unknown values
    title,    // the first line, and titles of sections
    header,   // column headers
    sorted,   // header of the sort column
    device,   // values from the GPU's own counters
    selected, // the row that keys act on
    branch,   // a heading in the tree
    total,    // the sum line
    alarm,    // something is lost or wrong
    warning,  // something is inefficient
    notice,   // a message in the footer, or an unusual state such as a pause
    bar,      // the filled part of a bar, or a plot
    hint,     // name of a key in the footer
    count     // number of styles
};

// Style of problems with this severity.
constexpr Style style_of(int severity)
{
    return severity >= 3 ? Style::alarm : severity == 2 ? Style::warning : Style::plain;
}

// Reads keys during start-up, when the kernel's verifier blocks this process for up to a second. A helper process reads
// the terminal, stores the keys, and sends SIGINT to this process if the user presses a key to quit. Setting the
// terminal's VINTR character to that key would not work, because VINTR would also signal the program that started this
// process.
class TypedAhead {
public:
    // ncurses (6.4) accepts at most 137 keys in put_back(); keys beyond max_bytes stay in the terminal's queue
    static constexpr size_t max_bytes = 100;

    explicit TypedAhead(int terminal);
    std::string end(); // stops reading, and returns the keys typed so far

private:
    Helper helper_;
};

// True if these keys would end the program when typed in the list: they contain q or F10, and no earlier key opens
// another view or a prompt.
bool quits(std::string_view typed);

} // namespace gpusnoop
