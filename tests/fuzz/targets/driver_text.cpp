// SPDX-License-Identifier: Apache-2.0
// Lines of the kernel's log, in which a process chooses its name, and the driver's version.
#include "gpu/command_layouts.hpp"
#include "gpu/xids.hpp"
#include "tests/fuzz/target.hpp"

#include <fmt/format.h>

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    if (const auto line = parse_xid(input)) {
        for (const std::string& part : {line->device, line->comm, line->text}) {
            expect(part.find('\n') == std::string::npos, "a part is within its line");
            expect(input.find(part) != std::string_view::npos, "a part is in the line");
        }
        expect(input.find(std::to_string(line->xid)) != std::string_view::npos, "the number is in the line");
    }
    if (const auto version = parse_driver_version(input)) {
        const auto again =
            parse_driver_version(fmt::format("{}.{}.{}\n", version->major, version->minor, version->patch));
        expect(again == version, "a version reads the same again");
    }
}
