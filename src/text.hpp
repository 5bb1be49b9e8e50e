// SPDX-License-Identifier: Apache-2.0
// Text that came from a traced process, made harmless, and numbers made readable.
#pragma once

#include <cstdint>
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

// Code points that steer a terminal or turn the direction of the text around them.
bool steers_terminal(char32_t code);

// Control characters and bytes that are not valid UTF-8 become \xNN, so that nothing can steer the terminal. C1
// controls and bidirectional overrides (U+202A..202E, U+2066..2069) count as control characters.
std::string printable(std::string_view text);

// The same without a string of its own, cut to `width` code points (a "+" then ends it). Returns the code points
// appended.
size_t append_printable(std::string& to, std::string_view text, size_t width = std::string_view::npos);

// Appends text as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD.
void append_json_string(std::string& to, std::string_view text);

std::string human_bytes(uint64_t bytes); // 1023 -> "1023", 1536 -> "1.5K", 12345678 -> "11.8M"

// Itanium names demangled, without the parameters where those have expressions in them; anything else comes back as it
// is. Bounded in time and size for any input. A leading __device_stub__ is taken off
// (clang's host stubs: _Z21__device_stub__vecaddPf).
std::string demangle(std::string_view name);

// A demangled kernel name cut down for a table: return type and parameter list off, template arguments to <...> from
// the inside out until it fits in `width` columns, then cut in the middle with "...". Keeps what tells kernels apart:
// where template arguments or middles are left out, the name ends with "#" and four digits that stand for all of it.
std::string shorten_kernel(std::string_view name, size_t width);

// Its own name alone, without namespaces and template arguments: kernels that share it are not told apart.
std::string base_of_kernel(std::string_view name);

} // namespace gpusnoop
