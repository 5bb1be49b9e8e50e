// SPDX-License-Identifier: Apache-2.0
// Prints the offset of a communicator's identity (rank, size) in NCCL's structure, as read from a library's code, or
// "unknown".
#include "attach/nccl_identity.hpp"
#include "base/error.hpp"

#include <cstdio>
#include <fcntl.h>

int main(int argc, char** argv)
try {
    if (argc != 2)
        throw gpusnoop::Error("usage: identity LIBRARY");
    const gpusnoop::Elf elf(gpusnoop::Fd(open(argv[1], O_RDONLY | O_CLOEXEC)));
    if (const auto offset = gpusnoop::identity_offset(elf, gpusnoop::host_decoder()))
        printf("%#x\n", *offset);
    else
        puts("unknown");
} catch (const gpusnoop::Error& error) {
    fprintf(stderr, "identity: %s\n", error.what());
    return 1;
}
