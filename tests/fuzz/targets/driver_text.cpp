// SPDX-License-Identifier: Apache-2.0
// Xid lines of the kernel log, and the driver's version file. Xid lines contain a process name, which can be any text.
#include "gpu/command_layouts.hpp"
#include "gpu/xids.hpp"
#include "tests/fuzz/target.hpp"

#include <fmt/format.h>

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    if (const auto line = parse_xid(input)) {
        for (const std::string& part : {line->device, line->comm, line->text}) {
            expect(part.find('\n') == std::string::npos, "fields contain no newline");
            expect(input.find(part) != std::string_view::npos, "the line contains each field");
        }
        expect(input.find(std::to_string(line->xid)) != std::string_view::npos, "the line contains the number");
    }
    if (const auto version = parse_driver_version(input)) {
        const auto again =
            parse_driver_version(fmt::format("{}.{}.{}\n", version->major, version->minor, version->patch));
        expect(again == version, "the version survives a round trip");
    }
}
