// SPDX-License-Identifier: Apache-2.0
#include "names/kernel_files.hpp"

#include <catch2/catch_test_macros.hpp>
#include <sstream>

using namespace gpusnoop;

namespace {

KernelSymbols symbols(const std::string& text)
{
    std::istringstream stream(text);
    return KernelSymbols(stream);
}

constexpr auto text = "ffffffff81000200 T schedule\nffffffff81000100 t __schedule\nffffffff81000300 D data\n"
                      "ffffffff81000400 W pipe_read\nffffffffc0000000 t nvidia_poll\t[nvidia]\nnonsense\n";

} // namespace

TEST_CASE("kernel stacks start where the thread leaves its CPU, without the tracer's frames")
{
    const std::vector<uint64_t> stack{0xffffffff81000999, 0xffffffff81000110, 0xffffffff81000205,
                                      0xffffffff81000404, 0xffffffffc0000010, 0x1000};
    CHECK(symbols(text).frames(stack) == std::vector<std::string>{"schedule+0x5 (kernel)", "pipe_read+0x4 (kernel)",
                                                                  "nvidia_poll+0x10 (kernel)", "0x1000 (kernel)"});
    // Addresses stay numbers if the kernel hides its symbols or has none.
    for (const char* hidden : {"0000000000000000 T schedule\n", "", "ffffffff81000200\n", "ffffffff81000200 T\n"})
        CHECK(symbols(hidden).frames(std::vector<uint64_t>{0xffffffff81000205}) ==
              std::vector<std::string>{"0xffffffff81000205 (kernel)"});
}
