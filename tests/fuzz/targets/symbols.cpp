// SPDX-License-Identifier: Apache-2.0
// Symbols of addresses in any mapped file, including its compressed .gnu_debugdata.
#include "names/user_symbols.hpp"
#include "tests/fuzz/target.hpp"

#include <sys/mman.h>
#include <unistd.h>

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    if (input.empty())
        return;
    const Fd file = file_with(input);
    void* const mapped = mmap(nullptr, input.size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
    expect(mapped != MAP_FAILED, "a file can be mapped");
    const auto start = reinterpret_cast<uint64_t>(mapped);
    std::vector<uint64_t> addresses;
    for (uint64_t at = 0; at < input.size() && addresses.size() < 64; at += 1 + input.size() / 64)
        addresses.push_back(start + at);
    UserSymbols symbols;
    const StackQuestion question{{.pid = static_cast<uint32_t>(getpid()), .serial = 1}, addresses, true};
    const StackAnswer answer = symbols.answer(question);
    expect(!answer.frames.empty() && answer.frames.size() <= addresses.size(), "each address has at most one frame");
    for (const StackAnswer::Frame& frame : answer.frames) {
        expect(frame.text.size() <= StackAnswer::text_max, "frames are bounded");
        expect(frame.text.find("fuzzed") != std::string::npos, "each frame names the file");
    }
    expect(message_of(answer).size() <= Connection::message_max, "the answer fits into a message");
    munmap(mapped, input.size());
}
