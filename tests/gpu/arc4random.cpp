// SPDX-License-Identifier: Apache-2.0
// arc4random(), which the static libstdc++ of new distributions expects from glibc 2.36. With this definition the
// bundle also runs on older C libraries.
#include <cstdlib>
#include <sys/random.h>

extern "C" unsigned arc4random() noexcept
{
    unsigned number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        abort();
    return number;
}
