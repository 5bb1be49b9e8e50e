// SPDX-License-Identifier: Apache-2.0
// Probe placement in the stand-in's libamdhip64, whose functions forward through a table as in ROCm 6.1 and later.
#include "attach/placement.hpp"
#include "attach/probe_layout.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fcntl.h>
#include <filesystem>

using namespace gpusnoop;

namespace {

// The test program is in build/unit, the library in build/standin.
Elf library(int version)
{
    const auto build = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
    const std::string name = (build / "standin/hip/libamdhip64.so.").string() + std::to_string(version);
    return Elf(Fd(open(name.c_str(), O_RDONLY | O_CLOEXEC)));
}

Symbol function(const Elf& elf, std::string_view name)
{
    const std::string_view names[] = {name};
    const std::vector<Symbol> found = elf.functions(names);
    REQUIRE(found.size() == 1);
    return found.front();
}

// Returns true if the probe is placed in the function itself, where the kernel must single-step an instruction.
bool stays(const Elf& elf, std::string_view name, const Layout& layout)
{
    DispatchTables tables(elf);
    const Symbol symbol = function(elf, name);
    const auto [offset, placement] = place(elf, tables, symbol, layout.row);
    CHECK((offset == symbol.file_offset) == !placement.emulated);
    CHECK(placement.delta == (placement.emulated ? 4 : 0)); // after endbr64
    return !placement.emulated;
}

} // namespace

TEST_CASE("a probe is placed in the target function if the forwarder passes on all arguments of the row", "[dispatch]")
{
    for (const int version : {6, 7}) {
        const Elf elf = library(version);
        INFO(version);
        CHECK(!stays(elf, "hipMalloc", "(out, bytes)"));
        CHECK(!stays(elf, "hipMalloc",
                     "(out, [bytes, height, depth])")); // a forwarder leaves arguments on the stack unchanged
        // This forwarder passes on only half of the third argument, and no fourth argument.
        CHECK(!stays(elf, "hipMemAdvise", "(dst, bytes)"));
        CHECK(!stays(elf, "hipMemAdvise", "(dst, bytes, int device)"));
        CHECK(stays(elf, "hipMemAdvise", "(dst, bytes, height)"));
        CHECK(stays(elf, "hipMemAdvise", "(dst, _, *{8 bytes})"));
        CHECK(stays(elf, "hipMemAdvise", "(dst, _, dim3 grid)"));
        CHECK(stays(elf, "hipMemAdvise", "(dst, _, _, int device)"));
    }
}

TEST_CASE("a function that uses no table is probed itself", "[dispatch]")
{
    CHECK(stays(library(7), "hipGraphAddExternalSemaphoresSignalNode", "(_, graph)"));
}
