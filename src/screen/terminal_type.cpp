// SPDX-License-Identifier: Apache-2.0
#include "screen/terminal_type.hpp"

#include "base/error.hpp"

#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <unistd.h>

#define NCURSES_NOMACROS
#include <curses.h>
#include <term.h>

namespace gpusnoop {

namespace {

// Of a terminfo string, without the delays that only terminals of long ago need.
std::string capability(const char* name)
{
    const char* value = ::tigetstr(name);
    const bool is_none = reinterpret_cast<intptr_t>(value) <= 0; // -1: it is no string
    std::string text(is_none ? "" : value);
    for (size_t at; (at = text.find("$<")) != std::string::npos;)
        text.erase(at, text.find('>', at) - at + 1);
    return text;
}

} // namespace

void take_locale()
{
    if (std::setlocale(LC_CTYPE, ""))
        return;
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        const char* value = std::getenv(name);
        if (!value || !*value)
            continue;
        const std::string locale(value);
        if (locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos)
            std::setlocale(LC_CTYPE, "C.UTF-8");
        return;
    }
}

void check_terminal()
{
    if (!::isatty(STDIN_FILENO) || !::isatty(STDOUT_FILENO))
        throw Error("there is no terminal to draw on: standard input and output must both be terminals",
                    no_terminal_needed);
    const char* name = std::getenv("TERM");
    if (!name || !*name)
        throw Error("the terminal type is unknown: TERM is not set", no_terminal_needed);
    int status = 0;
    if (::setupterm(name, STDOUT_FILENO, &status) != OK && status != 1)
        throw Error("the terminal type '" + std::string(name) + "' (TERM) is not known on this machine",
                    "try TERM=xterm-256color; " + std::string(no_terminal_needed));
    const bool can_draw = ::tigetstr("cup") && ::tigetstr("clear") && !::tigetflag("hc");
    ::del_curterm(::cur_term);
    if (!can_draw)
        throw Error("a terminal of type '" + std::string(name) + "' (TERM) cannot position its cursor",
                    no_terminal_needed);
}

std::string restoring_text()
{
    std::string text;
    for (const char* name : {"sgr0", "op", "rmkx", "cnorm", "rmcup"})
        text += capability(name);
    if (!capability("kmous").empty())
        text += "\033[?1000l\033[?1006l"; // the mouse, for which terminfo has no name; what ncurses 6.4 may have sent
    return text + "\r\n";
}

} // namespace gpusnoop

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
