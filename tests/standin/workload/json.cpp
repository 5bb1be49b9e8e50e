// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

#include <cstdio>

namespace workload::json {

std::string quoted(const std::string& s)
{
    std::string out = "\"";
    for (unsigned char c : s)
        if (c == '"' || c == '\\')
            (out += '\\') += static_cast<char>(c);
        else if (c < 0x20 || c > 0x7e) { // writes a byte as the Unicode code point with the same number
            char escape[8];
            snprintf(escape, sizeof escape, "\\u%04x", c);
            out += escape;
        } else
            out += static_cast<char>(c);
    return out + '"';
}

std::string hex(uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "\"0x%llx\"", static_cast<unsigned long long>(value));
    return text;
}

std::string triple(const standin::Dim3& d)
{
    return "[" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + "]";
}

const char* boolean(bool b)
{
    return b ? "true" : "false";
}

std::string or_null(bool known, const std::string& value)
{
    return known ? value : "null";
}

std::string list(const std::vector<uint64_t>& values)
{
    std::string out;
    for (uint64_t value : values)
        out += (out.empty() ? "[" : ",") + std::to_string(value);
    return out + "]";
}

std::string field(const char* name, uint64_t value)
{
    return ",\"" + std::string(name) + "\":" + std::to_string(value);
}

} // namespace workload::json
