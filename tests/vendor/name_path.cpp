// SPDX-License-Identifier: Apache-2.0
// Prints where a build of HIP stores the name of a hipFunction_t: a JSON list of offsets to follow, or [] if its code
// does not show it.
#include "base/error.hpp"
#include "names/driver_objects.hpp"

#include <cstdio>
#include <fcntl.h>

int main(int argc, char** argv)
try {
    if (argc != 2)
        throw gpusnoop::Error("usage: name_path LIBRARY");
    const gpusnoop::Elf elf(gpusnoop::Fd(open(argv[1], O_RDONLY | O_CLOEXEC)));
    const char* before = "[";
    for (const uint32_t offset : gpusnoop::hip_name_path(elf).value_or(gpusnoop::Path())) {
        printf("%s%u", before, offset);
        before = ", ";
    }
    puts(*before == '[' ? "[]" : "]");
} catch (const gpusnoop::Error& error) {
    fprintf(stderr, "name_path: %s\n", error.what());
    return 1;
}
