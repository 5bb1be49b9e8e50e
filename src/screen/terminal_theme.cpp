// SPDX-License-Identifier: Apache-2.0
#include "screen/terminal_theme.hpp"

#define NCURSES_NOMACROS
#include <curses.h>

namespace gpusnoop {

Theme colours(int how_many)
{
    Theme theme{};
    const auto set = [&](Style style, Look look) { theme[static_cast<size_t>(style)] = look; };
    set(Style::dim, how_many >= 16 ? Look{8, -1} : Look{-1, -1, WA_DIM});
    set(Style::title, {-1, -1, WA_BOLD});
    set(Style::header, {COLOR_BLACK, COLOR_GREEN});
    set(Style::sorted, {COLOR_BLACK, COLOR_CYAN});
    set(Style::device, {COLOR_BLUE, -1, WA_BOLD});
    set(Style::selected, {COLOR_BLACK, COLOR_CYAN});
    set(Style::branch, {COLOR_MAGENTA, -1, WA_BOLD});
    set(Style::total, {-1, -1, WA_BOLD});
    set(Style::alarm, {COLOR_RED, -1, WA_BOLD});
    set(Style::warning, {COLOR_YELLOW, -1, WA_BOLD});
    set(Style::notice, {COLOR_BLACK, COLOR_YELLOW});
    set(Style::bar, {COLOR_GREEN, -1});
    set(Style::hint, {COLOR_BLACK, COLOR_CYAN});
    return theme;
}

Theme mono()
{
    Theme theme{};
    const auto set = [&](Style style, attr_t attributes) { theme[static_cast<size_t>(style)].attributes = attributes; };
    set(Style::title, WA_BOLD);
    set(Style::header, WA_REVERSE);
    set(Style::sorted, WA_REVERSE | WA_BOLD | WA_UNDERLINE);
    set(Style::selected, WA_REVERSE | WA_BOLD);
    set(Style::branch, WA_BOLD);
    set(Style::total, WA_BOLD);
    set(Style::alarm, WA_BOLD | WA_REVERSE);
    set(Style::warning, WA_BOLD);
    set(Style::notice, WA_BOLD);
    set(Style::hint, WA_BOLD);
    return theme;
}

} // namespace gpusnoop
