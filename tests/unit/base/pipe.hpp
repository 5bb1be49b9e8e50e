// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/fd.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fcntl.h>
#include <unistd.h>

namespace gpusnoop {

struct Ends {
    Fd reading, writing;
};

inline Ends pipe_ends()
{
    int fds[2];
    REQUIRE(::pipe2(fds, O_CLOEXEC) == 0);
    return {Fd(fds[0]), Fd(fds[1])};
}

} // namespace gpusnoop
