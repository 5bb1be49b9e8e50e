// SPDX-License-Identifier: Apache-2.0
// fmt into a string that is there already. fmt::format_to() with its iterator compiles all of fmt's formatting anew in
// each file that has one; this does so in append_format.cpp.
#pragma once

#include <fmt/core.h>
#include <string>

namespace gpusnoop {

void append_formatted(std::string& to, fmt::string_view format, fmt::format_args arguments);

template<class... T>
void append_format(std::string& to, fmt::format_string<T...> format, T&&... values)
{
    append_formatted(to, format, fmt::make_format_args(values...));
}

} // namespace gpusnoop
