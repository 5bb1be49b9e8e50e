// SPDX-License-Identifier: Apache-2.0
// Demangling of untrusted kernel and function names, in a helper with limits.
#include "names/demangle.hpp"
#include "names/kernel_text.hpp"
#include "reader/reader.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

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

void serve(Helper::Task& task)
{
    while (const auto message = task.connection.receive())
        if (!task.connection.send(demangle(message->bytes)))
            return;
}

// nullopt if the helper hangs or crashes.
std::optional<std::string> readable(std::string_view name)
{
    static std::optional<std::string> answer;
    static Reader helper({.sandbox = process_reading_sandbox(256 << 20), .serve = serve, .apply = [](Message message) {
                              answer = std::move(message.bytes);
                              return true;
                          }});
    answer.reset();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const bool posted = helper.post(0, name); // false for one second after a helper hung or crashed
    expect(!posted || helper.wait_until(deadline), "the helper answers, or is replaced");
    return std::exchange(answer, std::nullopt);
}

} // namespace

void fuzz(std::string_view input)
{
    const bool plain = std::ranges::none_of(input, is_control);
    const std::string name = input.empty() ? std::string() : readable(input).value_or(std::string(input));
    expect(name.size() <= std::max(readable_max, input.size()), "names are bounded");
    expect(input.empty() || !name.empty(), "a name does not become empty");
    expect(may_be_mangled(input) || name == input, "names that are not mangled do not change");
    for (const size_t width : {1, 8, 24, 40, 100}) {
        const std::string cut = shorten_kernel(name, width);
        expect(columns(cut) <= width, "a name fits in its column");
        expect(!plain || std::ranges::none_of(cut, is_control), "no control characters are added");
    }
    expect(base_of_kernel(name).size() <= name.size(), "the base name is no longer than the name");
    expect(!plain || std::ranges::none_of(name, is_control), "no control characters are added");
}
