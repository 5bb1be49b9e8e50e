// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <random>

using namespace gpusnoop;

namespace {

std::string cut(std::string_view text, size_t width)
{
    std::string result;
    append_printable(result, text, width);
    return result;
}

std::string json_string(std::string_view text)
{
    std::string result;
    append_json_string(result, text);
    return result;
}

} // namespace

TEST_CASE("printable text cannot control a terminal", "[text]")
{
    CHECK(printable("plain text") == "plain text");
    CHECK(printable("") == "");
    CHECK(printable("caf\u00e9 \u4e2d\U0001F600") == "caf\u00e9 \u4e2d\U0001F600");
    CHECK(printable("\x1b[2J\t\n\x7f") == "\\x1B[2J\\x09\\x0A\\x7F");
    CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
    CHECK(printable("\u009b\u0085") == "\\xC2\\x9B\\xC2\\x85");
    CHECK(printable("\u00a0") == "\u00a0");
    CHECK(printable("\u202e\u2069") == "\\xE2\\x80\\xAE\\xE2\\x81\\xA9");
    CHECK(printable("\u061c\u200e\u200f") == "\\xD8\\x9C\\xE2\\x80\\x8E\\xE2\\x80\\x8F");
    CHECK(printable("\u2028\u2029") == "\\xE2\\x80\\xA8\\xE2\\x80\\xA9");
    for (const char* harmless : {"\u061b\u061d", "\u200d\u2010", "\u2027\u202f", "\u2065\u206a"})
        CHECK(printable(harmless) == harmless);
    CHECK(printable("\xff\xc3") == "\\xFF\\xC3");
    CHECK(printable("\xc0\xaf") == "\\xC0\\xAF");                   // overlong
    CHECK(printable("\xe0\x80\xaf") == "\\xE0\\x80\\xAF");          // overlong
    CHECK(printable("\xf0\x80\x80\xaf") == "\\xF0\\x80\\x80\\xAF"); // overlong
    CHECK(printable("\xed\xa0\x80") == "\\xED\\xA0\\x80");          // surrogate
    CHECK(printable("\xf4\x90\x80\x80") == "\\xF4\\x90\\x80\\x80"); // past U+10FFFF
    CHECK(printable("\xe4\xb8z") == "\\xE4\\xB8z");                 // truncated
}

TEST_CASE("text is truncated to a number of columns, at a character boundary", "[text]")
{
    CHECK(cut("0123456789", 10) == "0123456789");
    CHECK(cut("0123456789", 9) == "01234567+");
    CHECK(cut("0123456789", 1) == "+");
    CHECK(cut("0123456789", 0) == "");
    CHECK(cut("\u00e9\u00e9\u00e9", 3) == "\u00e9\u00e9\u00e9");
    CHECK(cut("\u00e9\u00e9\u00e9", 2) == "\u00e9+");
    CHECK(cut("\u00e9\u00e9\u00e9", 1) == "+");
    CHECK(cut("\u00e9\u00e9\u00e9", 0) == "");
    CHECK(cut("\x1b\x1b", 8) == "\\x1B\\x1B");
    CHECK(cut("\x1b\x1b", 7) == "\\x1B\\x+");
    CHECK(cut("\u4e2d\u6587", 4) == "\u4e2d\u6587"); // wide
    CHECK(cut("\u4e2d\u6587", 3) == "\u4e2d+");
    CHECK(cut("\u4e2d\u6587", 2) == "+");
    CHECK(cut("\U0001F600a", 3) == "\U0001F600a");
    CHECK(cut("e\u0301e\u0301", 2) == "e\u0301e\u0301"); // combining
    CHECK(cut("e\u0301e\u0301e", 2) == "e\u0301+");
    std::string to = "kept ";
    CHECK(append_printable(to, "\u00e9ab", 2) == 2);
    CHECK(to == "kept \u00e9+");
    to.clear();
    CHECK(append_printable(to, "\u4e2d\u6587", 2) == 1);
    CHECK(append_printable(to, "\u4e2d\u6587e\u0301\U0001F600") == 7);
}

TEST_CASE("JSON strings are escaped without loss", "[text]")
{
    CHECK(json_string("plain") == "\"plain\"");
    CHECK(json_string("\"\\/") == "\"\\\"\\\\/\"");
    CHECK(json_string("\n\x1b\u009b\u202e") == "\"\\u000a\\u001b\\u009b\\u202e\"");
    CHECK(json_string("\u061c\u200e\u200f\u2028\u2029") == "\"\\u061c\\u200e\\u200f\\u2028\\u2029\"");
    CHECK(json_string("\u00e9\xff") == "\"\u00e9\ufffd\"");
    CHECK(json_string("\xe4\xb8") == "\"\ufffd\ufffd\"");

    std::mt19937 random(1);
    for (int i = 0; i < 20000; ++i) {
        std::string bytes(random() % 12, '\0');
        for (char& c : bytes)
            c = static_cast<char>(random() % 4 ? random() : "\xe2\x80\xae\\\"\xf0\x9f"[random() % 7]);
        auto parsed = nlohmann::json::parse(json_string(bytes), nullptr, false);
        if (parsed.is_discarded()) {
            CAPTURE(printable(bytes));
            FAIL("not valid JSON");
        }
        // A valid UTF-8 string survives escaping and parsing unchanged.
        std::string valid = parsed.get<std::string>();
        if (nlohmann::json::parse(json_string(valid)).get<std::string>() != valid)
            FAIL("not the same text");
    }
}

TEST_CASE("byte counts are formatted with short units", "[text]")
{
    CHECK(human_bytes(0) == "0");
    CHECK(human_bytes(1023) == "1023");
    CHECK(human_bytes(1024) == "1.0K");
    CHECK(human_bytes(1536) == "1.5K");
    CHECK(human_bytes(12345678) == "11.8M");
    CHECK(human_bytes((1 << 20) - 1) == "1.0M");
    CHECK(human_bytes(1023 << 10) == "1023.0K");
    CHECK(human_bytes(uint64_t{80} << 30) == "80.0G");
    CHECK(human_bytes(UINT64_MAX) == "16.0E");
}

TEST_CASE("bytes and counts in sentences", "[text]")
{
    CHECK(prose_bytes(0) == "0 bytes");
    CHECK(prose_bytes(1) == "1 byte");
    CHECK(prose_bytes(1023) == "1023 bytes");
    CHECK(prose_bytes(1536) == "1.5 KiB");
    CHECK(prose_bytes((1 << 20) - 1) == "1 MiB");
    CHECK(prose_bytes(uint64_t{16} << 30) == "16 GiB");
    CHECK(prose_count(0) == "0");
    CHECK(prose_count(4521.4) == "4521");
    CHECK(prose_count(9999.6) == "10k");
    CHECK(prose_count(200318) == "200k");
    CHECK(prose_count(999'499) == "999k");
    CHECK(prose_count(999'501) == "1.0M");
    CHECK(prose_count(1234567) == "1.2M");
}
