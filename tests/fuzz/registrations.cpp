// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any file may be scanned, and any answer of a scan, or file of the cache, may be read.
#include "error.hpp"
#include "registration_scan.hpp"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sys/mman.h>
#include <unistd.h>

namespace {

void scan(const uint8_t* data, size_t size)
{
    gpusnoop::Fd file(memfd_create("fuzzed", MFD_CLOEXEC));
    if (!file || write(file.get(), data, size) != static_cast<ssize_t>(size)) {
        perror("memfd");
        abort();
    }
    try {
        const gpusnoop::Elf elf(std::move(file));
        const gpusnoop::Registrations found = gpusnoop::scan_registrations(elf);
        const auto again = gpusnoop::decode_registrations(gpusnoop::encode(found));
        if (!again || again->kernels.size() != found.kernels.size() || again->handles.size() != found.handles.size())
            abort();
        const gpusnoop::ElfImage image(elf);
        for (const gpusnoop::Registration& kernel : found.kernels)
            if (registered_name(image, kernel).size() > 16 << 10)
                abort();
        for (const gpusnoop::HandleVariable& handle : found.handles)
            keeps_handle(image, handle);
    } catch (const gpusnoop::Error&) { // NOLINT(bugprone-empty-catch): most are no ELF files
    }
}

// libFuzzer's own limit is one of the clock, which a busy machine breaks.
void check_time(std::clock_t begun)
{
    constexpr double longest = 2; // seconds of the processor
    if (static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC < longest)
        return;
    fputs("ERROR: an input took more than 2 seconds\n", stderr);
    abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    const std::clock_t begun = std::clock();
    gpusnoop::decode_registrations({reinterpret_cast<const char*>(data), size});
    scan(data, size);
    check_time(begun);
    return 0;
}
