// SPDX-License-Identifier: Apache-2.0
// Text helpers: escaping of untrusted text, parsing, number formats and terminal widths.
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

// The first code point of a non-empty text. Overlong forms, surrogates and values past U+10FFFF are invalid.
CodePoint first_code_point(std::string_view text);

// True for code points that control a terminal, end a line or change the direction of text.
bool steers_terminal(char32_t code);

// Appends the UTF-8 encoding of any code point.
void append_utf8(std::string& to, char32_t code);

// Escapes control characters and invalid UTF-8 as \xNN, so that untrusted text cannot control the terminal. C1
// controls, line and paragraph separators (U+2028, U+2029) and bidirectional controls (U+061C, U+200E, U+200F,
// U+202A..202E, U+2066..2069) count as control characters.
std::string printable(std::string_view text);

// Appends printable(text). If it is wider than `width` terminal columns, truncates it to that width, with a "+" at the
// end. Returns the number of columns appended.
size_t append_printable(std::string& to, std::string_view text, size_t width = std::string_view::npos);

// Appends text as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD.
void append_json_string(std::string& to, std::string_view text);

// Joins texts, as in "a, b, c". Replaces fmt::join(), which instantiates fmt's formatting in every file that uses it.
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

// Returns the text without white space at both ends.
std::string_view trimmed(std::string_view text);

// Removes the first part of a list and the separator after it, and returns the part. A separator at the end does not
// begin another part.
inline std::string_view next_part(std::string_view& list, char separator)
{
    const std::string_view part = list.substr(0, list.find(separator));
    list.remove_prefix(part.size() + (part.size() < list.size() ? 1 : 0));
    return part;
}

// Returns the text after the last slash, or the whole text if it has no slash.
inline std::string_view base_name(std::string_view path)
{
    return path.substr(path.rfind('/') + 1);
}

// Removes a number from the beginning of a text and returns it. If the text has no number or the number is out of
// range, returns nullopt and leaves the text unchanged.
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

// Returns the number at the beginning of a text. Any text may follow the number.
template<class Number>
std::optional<Number> leading_number(std::string_view text, int base = 10)
{
    return consume_number<Number>(text, base);
}

// Returns nullopt unless the whole text is a number.
template<class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10)
{
    const auto value = consume_number<Number>(text, base);
    return text.empty() ? value : std::nullopt;
}

// Calls each(key, value) for each line "KEY: VALUE"; other lines are skipped.
void for_each_field(std::string_view text,
                    const std::function<void(std::string_view key, std::string_view value)>& each);

std::string human_bytes(uint64_t bytes); // for tables: 1023 -> "1023", 1536 -> "1.5K", 12345678 -> "11.8M"
std::string prose_bytes(uint64_t bytes); // for sentences: 100 -> "100 bytes", 1536 -> "1.5 KiB", 16 << 30 -> "16 GiB"
std::string prose_count(double count);   // for sentences: 4521 -> "4521", 200318 -> "200k", 1234567 -> "1.2M"

// Returns the width of a character on a terminal: 0 if it modifies the preceding character, 2 if it is a wide (East
// Asian) character, negative if it is not printable. Uses wcwidth() in a UTF-8 locale, whatever the environment's
// locale is.
int columns_of(char32_t code);

// True for joiners, variation selectors and tags. Terminals disagree on how they change the width of adjacent
// characters.
bool is_invisible(char32_t code);

// Returns a text such as "; did you mean 'kernel'?", to append to a message about a mistyped word. Empty if no known
// word is similar. known: a list such as "pid, comm, thread". Case is ignored.
std::string suggestion(std::string_view typed, std::string_view known);

// These functions append formatted text to a string. Unlike fmt::format_to() with an iterator, they do not instantiate
// fmt's formatting in every file.
void append_formatted(std::string& to, fmt::string_view format, fmt::format_args arguments);

template<class... T>
void append_format(std::string& to, fmt::format_string<T...> format, T&&... values)
{
    append_formatted(to, format, fmt::make_format_args(values...));
}

} // namespace gpusnoop
