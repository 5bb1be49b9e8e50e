// SPDX-License-Identifier: Apache-2.0
#include "base/append_format.hpp"

#include <fmt/format.h>
#include <iterator>

namespace gpusnoop {

void append_formatted(std::string& to, fmt::string_view format, fmt::format_args arguments)
{
    fmt::vformat_to(std::back_inserter(to), format, arguments);
}

} // namespace gpusnoop
