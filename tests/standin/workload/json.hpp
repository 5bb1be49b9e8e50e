// SPDX-License-Identifier: Apache-2.0
// JSON values for truth files.
#pragma once

#include "../abi.hpp"

#include <concepts>
#include <optional>
#include <string>
#include <vector>

namespace workload::json {

struct Hex {
    uint64_t number;
};
struct OrNull { // null if the text is empty
    const std::string& text;
};

std::string value(const std::string&);
std::string value(Hex);
std::string value(OrNull);
std::string value(const standin::Dim3&);
std::string value(const std::vector<uint64_t>&);
template<std::integral T>
std::string value(T number)
{
    if constexpr (std::same_as<T, bool>)
        return number ? "true" : "false";
    else
        return std::to_string(number);
}
template<class T>
std::string value(const std::optional<T>& optional)
{
    return optional ? value(*optional) : "null";
}

// ,"name":value
template<class T>
std::string field(const char* name, const T& of)
{
    return ",\"" + std::string(name) + "\":" + value(of);
}
// The same, with null if the value is not known.
template<class T>
std::string field_if(bool known, const char* name, const T& of)
{
    return known ? field(name, of) : ",\"" + std::string(name) + "\":null";
}

} // namespace workload::json
