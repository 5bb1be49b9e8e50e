// SPDX-License-Identifier: Apache-2.0
// Text that came from a traced process, made harmless, and numbers made readable.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <fmt/core.h>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

struct CodePoint {
    char32_t code = 0;
    size_t length = 0; // in bytes; 0: not valid UTF-8
};

// The code point that a text, which is not empty, starts with. Overlong forms, surrogates and values past U+10FFFF are
// not valid.
CodePoint first_code_point(std::string_view text);

// Code points that steer a terminal, end a line or turn the direction of the text around them.
bool steers_terminal(char32_t code);

// The other way round: the bytes of a code point, whatever it is.
void append_utf8(std::string& to, char32_t code);

// Control characters and bytes that are not valid UTF-8 become \xNN, so that nothing can steer the terminal. C1
// controls, line and paragraph separators (U+2028, U+2029) and what turns the direction of text (U+061C, U+200E,
// U+200F, U+202A..202E, U+2066..2069) count as control characters.
std::string printable(std::string_view text);

// Appends the same, cut to `width` columns of a terminal; a "+" then ends it. Returns the columns appended.
size_t append_printable(std::string& to, std::string_view text, size_t width = std::string_view::npos);

// Appends text as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD.
void append_json_string(std::string& to, std::string_view text);

// "a, b, c". fmt::join compiles fmt's formatting anew in each file that has one.
template<class Texts>
std::string joined(const Texts& texts, std::string_view between)
{
    std::string all;
    for (bool first = true; const auto& text : texts) {
        all.append(first ? std::string_view() : between).append(text);
        first = false;
    }
    return all;
}

// Without the blanks and line ends at both ends.
std::string_view trimmed(std::string_view text);

// Removes the first part of a list and the separator behind it, and returns the part. An empty one at the end of the
// list is no part.
inline std::string_view next_part(std::string_view& list, char separator)
{
    const std::string_view part = list.substr(0, list.find(separator));
    list.remove_prefix(part.size() + (part.size() < list.size() ? 1 : 0));
    return part;
}

// What stands behind the last slash; all of it where there is none.
inline std::string_view base_name(std::string_view path)
{
    return path.substr(path.rfind('/') + 1);
}

// Removes the number that a text begins with. nullopt, and the text stays as it is, if there is none or it does not
// fit.
template<class Number>
std::optional<Number> consume_number(std::string_view& text, int base = 10)
{
    Number value{};
    std::from_chars_result end{};
    if constexpr (std::integral<Number>)
        end = std::from_chars(text.data(), text.data() + text.size(), value, base);
    else
        end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end.ec != std::errc())
        return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end.ptr - text.data()));
    return value;
}

// The number that a text begins with, whatever follows.
template<class Number>
std::optional<Number> leading_number(std::string_view text, int base = 10)
{
    return consume_number<Number>(text, base);
}

// A text that is a number and nothing else.
template<class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10)
{
    const auto value = consume_number<Number>(text, base);
    return text.empty() ? value : std::nullopt;
}

// Each line "KEY: VALUE" of a text, as each(key, value); others are skipped.
void for_each_field(std::string_view text,
                    const std::function<void(std::string_view key, std::string_view value)>& each);

std::string human_bytes(uint64_t bytes); // for tables: 1023 -> "1023", 1536 -> "1.5K", 12345678 -> "11.8M"
std::string prose_bytes(uint64_t bytes); // for sentences: 100 -> "100 bytes", 1536 -> "1.5 KiB", 16 << 30 -> "16 GiB"
std::string prose_count(double count);   // for sentences: 4521 -> "4521", 200318 -> "200k", 1234567 -> "1.2M"

// Columns that characters take on a terminal.

// 0: it joins or changes the character before it; 2: wide, as in East Asian scripts; negative: it cannot be shown. As
// wcwidth() has it in a locale of UTF-8, whatever the environment's is.
int columns_of(char32_t code);

// Joiners, variation selectors, tags: terminals disagree on what they do to the characters around them.
bool is_invisible(char32_t code);

// What somebody may have meant who mistyped a word.

// "; did you mean 'kernel'?", for the end of a sentence; empty where no known word is near. known: "pid, comm, thread".
// Capitals do not matter.
std::string suggestion(std::string_view typed, std::string_view known);

// fmt into a string that is there already. fmt::format_to() with its iterator compiles all of fmt's formatting anew in
// each file that has one; this does so in text.cpp.
void append_formatted(std::string& to, fmt::string_view format, fmt::format_args arguments);

template<class... T>
void append_format(std::string& to, fmt::format_string<T...> format, T&&... values)
{
    append_formatted(to, format, fmt::make_format_args(values...));
}

} // namespace gpusnoop
