// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <clocale>
#include <cwchar>
#include <fmt/format.h>
#include <iterator>
#include <locale.h>
#include <vector>

namespace gpusnoop {

namespace {

bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7f;
}
bool is_plain_in_json(char c)
{
    return is_plain(c) && c != '"' && c != '\\';
}

} // namespace

CodePoint first_code_point(std::string_view text)
{
    auto lead = static_cast<unsigned char>(text[0]);
    if (lead < 0x80)
        return {lead, 1};
    if (lead < 0xc2 || lead > 0xf4)
        return {};
    size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (text.size() < length)
        return {};
    char32_t code = lead & (0x7fU >> length);
    for (size_t i = 1; i < length; ++i) {
        auto next = static_cast<unsigned char>(text[i]);
        if ((next & 0xc0) != 0x80)
            return {};
        code = code << 6 | (next & 0x3f);
    }
    bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    if (overlong || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff)
        return {};
    return {code, length};
}

bool steers_terminal(char32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x061c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

void append_utf8(std::string& to, char32_t code)
{
    const auto byte = [&](char32_t value) { to += static_cast<char>(value); };
    if (code < 0x80)
        return byte(code);
    if (code < 0x800) {
        byte(0xc0 | code >> 6);
    } else {
        if (code < 0x10000) {
            byte(0xe0 | code >> 12);
        } else {
            byte(0xf0 | code >> 18);
            byte(0x80 | (code >> 12 & 0x3f));
        }
        byte(0x80 | (code >> 6 & 0x3f));
    }
    byte(0x80 | (code & 0x3f));
}

std::string printable(std::string_view text)
{
    std::string result;
    append_printable(result, text);
    return result;
}

size_t append_printable(std::string& to, std::string_view text, size_t width)
{
    // Fast path, because nearly every name is plain ASCII.
    if (std::all_of(text.begin(), text.end(), is_plain)) {
        if (text.size() <= width) {
            to += text;
            return text.size();
        }
        to.append(text, 0, width ? width - 1 : 0);
        to.append(width ? 1 : 0, '+');
        return width;
    }

    size_t columns = 0;
    size_t cut = to.size(), cut_columns = 0; // where the text ends if it must be truncated
    auto put = [&](std::string_view character, size_t wide = 1) {
        to += character;
        columns += wide;
        if (columns < width) {
            cut = to.size();
            cut_columns = columns;
        }
    };
    while (!text.empty() && columns <= width) {
        CodePoint c = first_code_point(text);
        std::string_view bytes = text.substr(0, c.length ? c.length : 1);
        text.remove_prefix(bytes.size());
        if (c.length && !steers_terminal(c.code)) {
            // Terminals show a replacement character, one column wide, for a character that is not printable.
            const int wide = columns_of(c.code);
            put(bytes, wide < 0 ? 1 : static_cast<size_t>(wide));
            continue;
        }
        for (char byte : bytes) {
            constexpr std::string_view digits = "0123456789ABCDEF";
            auto value = static_cast<unsigned char>(byte);
            put("\\");
            put("x");
            put(digits.substr(value >> 4, 1));
            put(digits.substr(value & 15, 1));
        }
    }
    if (columns <= width)
        return columns;
    to.resize(cut);
    to.append(width ? 1 : 0, '+');
    return width ? cut_columns + 1 : 0;
}

void append_json_string(std::string& to, std::string_view text)
{
    to += '"';
    for (size_t at = 0; at < text.size();) {
        size_t run = at;
        while (run < text.size() && is_plain_in_json(text[run]))
            ++run;
        to.append(text, at, run - at);
        at = run;
        if (at == text.size())
            break;

        CodePoint c = first_code_point(text.substr(at));
        if (c.length == 0)
            to += "\xEF\xBF\xBD"; // U+FFFD
        else if (c.code == '"' || c.code == '\\')
            to.append({'\\', static_cast<char>(c.code)});
        else if (steers_terminal(c.code)) // the escape has the same meaning in JSON, and does not control a terminal
            append_format(to, "\\u{:04x}", static_cast<uint32_t>(c.code));
        else
            to.append(text, at, c.length);
        at += c.length ? c.length : 1;
    }
    to += '"';
}

std::string_view trimmed(std::string_view text)
{
    constexpr std::string_view blank = " \t\r\n";
    const size_t from = std::min(text.find_first_not_of(blank), text.size());
    return text.substr(from, text.find_last_not_of(blank) + 1 - from);
}

void for_each_field(std::string_view text,
                    const std::function<void(std::string_view key, std::string_view value)>& each)
{
    while (!text.empty()) {
        const std::string_view line = next_part(text, '\n');
        const size_t colon = line.find(':');
        if (colon != std::string_view::npos)
            each(line.substr(0, colon), line.substr(std::min(line.find_first_not_of(" \t", colon + 1), line.size())));
    }
}

std::string human_bytes(uint64_t bytes)
{
    if (bytes < 1024)
        return std::to_string(bytes);
    auto value = static_cast<double>(bytes) / 1024;
    size_t unit = 0;
    while (value >= 1023.95) { // would be printed as "1024.0"
        value /= 1024;
        ++unit;
    }
    return fmt::format("{:.1f}{}", value, "KMGTPE"[unit]);
}

std::string prose_bytes(uint64_t bytes)
{
    if (bytes < 1024)
        return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
    std::string text = human_bytes(bytes);
    const char unit = text.back();
    text.pop_back();
    if (text.ends_with(".0"))
        text.resize(text.size() - 2);
    return fmt::format("{} {}iB", text, unit);
}

std::string prose_count(double count)
{
    if (count < 9999.5)
        return fmt::format("{:.0f}", count);
    return count < 999'500 ? fmt::format("{:.0f}k", count / 1e3) : fmt::format("{:.1f}M", count / 1e6);
}

namespace {

// A UTF-8 locale for wcwidth(). Daemons and commands under sudo often run in the locale "C", in which wcwidth() knows
// only ASCII.
class Utf8Locale {
public:
    Utf8Locale() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {}
    ~Utf8Locale()
    {
        if (locale_)
            freelocale(locale_);
    }
    Utf8Locale(const Utf8Locale&) = delete;
    Utf8Locale& operator=(const Utf8Locale&) = delete;

    int width(char32_t code) const
    {
        if (!locale_)
            return ::wcwidth(static_cast<wchar_t>(code));
        const locale_t before = uselocale(locale_);
        const int width = ::wcwidth(static_cast<wchar_t>(code));
        uselocale(before);
        return width;
    }

private:
    locale_t locale_; // null if the system lacks C.UTF-8
};

} // namespace

bool is_invisible(char32_t code)
{
    return code == 0xad || (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x206f) ||
           (code >= 0xfe00 && code <= 0xfe0f) || code == 0xfeff || code >= 0xe0000;
}

int columns_of(char32_t code)
{
    if (code >= 0x20 && code < 0x7f)
        return 1;
    if (is_invisible(code))
        return 0;
    if (steers_terminal(code))
        return -1;
    static const Utf8Locale locale;
    return std::min(locale.width(code), 2);
}

namespace {

std::string lower(std::string_view text)
{
    std::string out(text);
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
    return out;
}

// Damerau-Levenshtein distance (optimal string alignment).
size_t edit_distance(const std::string& typed, const std::string& meant)
{
    const size_t columns = meant.size() + 1;
    std::vector<size_t> table((typed.size() + 1) * columns);
    const auto at = [&](size_t i, size_t j) -> size_t& { return table[i * columns + j]; };
    for (size_t i = 0; i <= typed.size(); i++)
        for (size_t j = 0; j <= meant.size(); j++) {
            if (i == 0 || j == 0) {
                at(i, j) = i + j;
                continue;
            }
            at(i, j) =
                std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (typed[i - 1] != meant[j - 1])});
            if (i > 1 && j > 1 && typed[i - 1] == meant[j - 2] && typed[i - 2] == meant[j - 1])
                at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
        }
    return table.back();
}

} // namespace

std::string suggestion(std::string_view typed, std::string_view known)
{
    constexpr size_t longest = 40; // a longer text is not a mistyped word
    if (typed.size() > longest)
        return {};
    const std::string word = lower(typed);
    std::string_view nearest;
    size_t least = std::max<size_t>(1, word.size() / 3) + 1;
    for (size_t at = 0, end = 0; end != std::string_view::npos; at = end + 2) {
        end = known.find(", ", at);
        const std::string_view one = known.substr(at, end - at);
        const std::string other = lower(one);
        // A word that is only a prefix of a known word counts as one mistake.
        const size_t mistakes = word.size() >= 3 && other.starts_with(word) ? 1 : edit_distance(word, other);
        if (mistakes < least && mistakes < word.size()) {
            least = mistakes;
            nearest = one;
        }
    }
    return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}

void append_formatted(std::string& to, fmt::string_view format, fmt::format_args arguments)
{
    fmt::vformat_to(std::back_inserter(to), format, arguments);
}

} // namespace gpusnoop
