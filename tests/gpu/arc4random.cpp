// SPDX-License-Identifier: Apache-2.0
// arc4random() for the static libstdc++ of new distributions, which needs glibc 2.36: the bundle also runs with older C
// libraries.
#include <cstdlib>
#include <sys/random.h>

extern "C" unsigned arc4random() noexcept
{
    unsigned number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        abort();
    return number;
}
