// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

#include <cstdio>

namespace workload::json {

std::string value(const std::string& text)
{
    std::string out = "\"";
    for (unsigned char c : text)
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

std::string value(Hex hex)
{
    char text[24];
    snprintf(text, sizeof text, "\"0x%llx\"", static_cast<unsigned long long>(hex.number));
    return text;
}

std::string value(OrNull of)
{
    return of.text.empty() ? "null" : value(of.text);
}

std::string value(const standin::Dim3& d)
{
    return value(std::vector<uint64_t>{d.x, d.y, d.z});
}

std::string value(const std::vector<uint64_t>& numbers)
{
    std::string out;
    for (uint64_t number : numbers)
        out += (out.empty() ? "[" : ",") + std::to_string(number);
    return out + "]";
}

} // namespace workload::json
