// SPDX-License-Identifier: Apache-2.0
// Scan of any file for the kernels that it registers.
#include "base/error.hpp"
#include "names/registration_scan.hpp"
#include "tests/fuzz/target.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
try {
    const Elf elf(file_with(input));
    const Registrations found = scan_registrations(elf);
    const auto again = decode_registrations(encode(found));
    expect(again && again->kernels.size() == found.kernels.size() && again->handles.size() == found.handles.size(),
           "the result survives a round trip");
    const ElfImage image(elf);
    for (const Registration& kernel : found.kernels)
        expect(registered_name(image, kernel).size() <= 16 << 10, "names are bounded");
    for (const HandleVariable& handle : found.handles)
        keeps_handle(image, handle);
} catch (const Error&) { // most inputs are not ELF files
}
