// SPDX-License-Identifier: Apache-2.0
// Results of a registration scan, received from a helper or read from the cache.
#include "names/scan_cache.hpp"
#include "tests/fuzz/target.hpp"

#include <filesystem>
#include <sys/stat.h>

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    const auto found = decode_registrations(input);
    if (found) {
        expect(encode(*found) == input, "the result survives a round trip");
        for (const Registration& kernel : found->kernels)
            expect(found->kernel(kernel.stub), "each kernel can be found by its stub");
    }
    static const Folder folder;
    static const std::string id = "0123456789abcdef";
    folder.write(id + "-1", input);
    chmod((folder.path() + '/' + id + "-1").c_str(), 0600);
    expect(ScanCache(folder.path()).find(id, 1).has_value() == found.has_value(), "the cache accepts the same inputs");
}
