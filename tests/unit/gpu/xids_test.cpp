// SPDX-License-Identifier: Apache-2.0
#include "gpu/xids.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

using namespace gpusnoop;

TEST_CASE("an Xid line of the kernel log is parsed; its parts may be missing or unknown")
{
    const auto shown = [](std::string_view text) {
        const auto line = parse_xid(text);
        return line ? fmt::format("{}|{}|{}|{}|{}", line->device, line->xid,
                                  line->pid ? fmt::to_string(*line->pid) : "", line->comm, line->text)
                    : "none";
    };
    CHECK(shown("6,1234,567890,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=python3, MMU Fault: "
                "ENGINE GRAPHICS, at 0x7f00\n SUBSYSTEM=pci\n") ==
          "0000:3b:00|31|1234|python3|MMU Fault: ENGINE GRAPHICS, at 0x7f00");
    CHECK(shown("4,1,2,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.") ==
          "0000:3b:00|79|||GPU has fallen off the bus.");
    CHECK(shown("NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 13, pid='<unknown>', name=<unknown>, text") ==
          "0000:3b:00 GPU-I:05|13||<unknown>|text");
    CHECK(shown("NVRM: Xid (PCI:0000:3b:00): 43") == "0000:3b:00|43|||");
    // A name ends at its first comma.
    CHECK(shown("NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=a, b") == "0000:3b:00|31|1|a|b");
    // Other lines are ignored, and nothing is read beyond the end of the line.
    for (const char* text : {"", "6,1,2,-;usb 1-1: new device", "NVRM: Xid (PCI:", "NVRM: Xid (PCI:0000:3b:00): ",
                             "NVRM: Xid (PCI:0000:3b:00): many, pid=1", "NVRM: Xid (PCI:0000:3b:00\n): 31"})
        CHECK(shown(text) == "none");
}
