// SPDX-License-Identifier: Apache-2.0
#include "gpu/xids.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

TEST_CASE("an Xid line of the kernel log is parsed")
{
    const auto line = parse_xid("6,1234,567890,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=python3, MMU Fault: "
                                "ENGINE GRAPHICS, at 0x7f00\n SUBSYSTEM=pci\n");
    REQUIRE(line);
    CHECK(line->device == "0000:3b:00");
    CHECK(line->xid == 31);
    CHECK(line->pid == 1234u);
    CHECK(line->comm == "python3");
    CHECK(line->text == "MMU Fault: ENGINE GRAPHICS, at 0x7f00");
}

TEST_CASE("parts of an Xid line may be missing or unknown")
{
    const auto bare = parse_xid("4,1,2,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.");
    REQUIRE(bare);
    CHECK(bare->xid == 79);
    CHECK_FALSE(bare->pid);
    CHECK(bare->comm.empty());
    CHECK(bare->text == "GPU has fallen off the bus.");

    const auto unknown = parse_xid("NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 13, pid='<unknown>', name=<unknown>, text");
    REQUIRE(unknown);
    CHECK_FALSE(unknown->pid);
    CHECK(unknown->comm == "<unknown>");
    CHECK(unknown->device == "0000:3b:00 GPU-I:05");

    const auto alone = parse_xid("NVRM: Xid (PCI:0000:3b:00): 43");
    REQUIRE(alone);
    CHECK(alone->xid == 43);
    CHECK(alone->text.empty());
}

TEST_CASE("other lines are ignored")
{
    for (const char* text : {"", "6,1,2,-;usb 1-1: new device", "NVRM: Xid (PCI:", "NVRM: Xid (PCI:0000:3b:00): ",
                             "NVRM: Xid (PCI:0000:3b:00): many, pid=1", "NVRM: Xid (PCI:0000:3b:00\n): 31"})
        CHECK_FALSE(parse_xid(text));
    // A name ends at its first comma. Nothing is read beyond the end of the line.
    const auto comma = parse_xid("NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=a, b");
    REQUIRE(comma);
    CHECK(comma->comm == "a");
    CHECK(comma->text == "b");
}
