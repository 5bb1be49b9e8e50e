// SPDX-License-Identifier: Apache-2.0
// What the static libstdc++ of a new distribution wants of its C library, 2.36; the bundle also goes to older ones.
#include <cstdlib>
#include <sys/random.h>

extern "C" unsigned arc4random() noexcept
{
    unsigned number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        abort();
    return number;
}
