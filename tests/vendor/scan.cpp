// SPDX-License-Identifier: Apache-2.0
// Prints the kernels that a file registers, as JSON lines: one per kernel and handle variable, and one with totals.
#include "base/error.hpp"
#include "names/registration_scan.hpp"

#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <string_view>
#include <sys/resource.h>

int main(int argc, char** argv)
try {
    if (argc != 2)
        throw gpusnoop::Error("usage: scan FILE");
    const gpusnoop::Elf elf(gpusnoop::Fd(open(argv[1], O_RDONLY | O_CLOEXEC)));
    const gpusnoop::Registrations found = gpusnoop::scan_registrations(elf);
    const double seconds = static_cast<double>(clock()) / CLOCKS_PER_SEC;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const gpusnoop::ElfImage image(elf);
    for (const gpusnoop::Registration& r : found.kernels)
        printf("{\"stub\":%lu,\"name\":\"%s\"}\n", r.stub, registered_name(image, r).c_str());
    for (const gpusnoop::HandleVariable& h : found.handles)
        printf("{\"variable\":%lu,\"stub\":%lu,\"kept\":%s}\n", h.variable, h.stub,
               keeps_handle(image, h) ? "true" : "false");
    printf("{\"sites\":%lu,\"read\":%lu,\"kernels\":%zu,\"handles\":%zu,\"cpu_seconds\":%.3f,\"peak_kib\":%ld}\n",
           found.sites, found.read, found.kernels.size(), found.handles.size(), seconds, usage.ru_maxrss);
} catch (const gpusnoop::Error& error) {
    fprintf(stderr, "scan: %s\n", error.what());
    return 1;
}
