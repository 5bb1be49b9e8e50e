// SPDX-License-Identifier: Apache-2.0
// Names of kernels and functions, which programs choose.
#include "names/itanium.hpp"
#include "names/kernel_text.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>

using namespace gpusnoop;

namespace {

bool is_control(char c)
{
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

size_t columns(std::string_view text)
{
    return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

} // namespace

void fuzz(std::string_view input)
{
    const bool plain = std::ranges::none_of(input, is_control);
    const std::string name = demangle(input);
    expect(name.size() <= std::max(itanium::longest_result, input.size()), "names are bounded");
    expect(input.empty() || !name.empty(), "a name stays one");
    for (const size_t width : {1, 8, 24, 40, 100}) {
        const std::string cut = shorten_kernel(name, width);
        expect(columns(cut) <= width, "a name fits in its column");
        expect(!plain || std::ranges::none_of(cut, is_control), "nothing that steers comes in");
    }
    expect(base_of_kernel(name).size() <= name.size(), "a part is no longer than the whole");
    expect(!plain || std::ranges::none_of(name, is_control), "nothing that steers comes in");
}
