// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <string>

namespace gpusnoop {

// Returns the message of the Error that `work` throws, and "; " with its hint, if it has one. Returns "" if there is no
// error.
std::string error_of(auto work)
{
    try {
        work();
    } catch (const Error& error) {
        return error.hint().empty() ? error.what() : error.what() + ("; " + error.hint());
    }
    return {};
}

} // namespace gpusnoop
