// SPDX-License-Identifier: Apache-2.0
// Shared options, parsed from arbitrary arguments (scripts may pass on untrusted ones). A newline ends each argument.
#include "run/command_line.hpp"
#include "run/shared_options.hpp"
#include "tests/fuzz/target.hpp"

#include <vector>

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    constexpr std::string_view ways[] = {"perf", "session"};
    std::vector<std::string> words{"fuzz"};
    for (; !input.empty() && words.size() < 100; input.remove_prefix(std::min(words.back().size() + 1, input.size())))
        words.emplace_back(input.substr(0, std::min(input.find('\n'), input.find('\0'))));
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    try {
        CommandLine line("fuzz", "summary", "examples");
        Options o;
        add_shared_options(line, o, ways, "");
        line.parse(static_cast<int>(words.size()), arguments.data());
        check_shared_options(o);
        for (const pid_t pid : o.pids)
            expect(pid > 0, "pids are positive");
        expect(o.tid >= 0 && o.comm.size() <= 15, "tid and comm are in range");
        for (const auto& time : {o.interval, o.duration})
            expect(!time || *time > std::chrono::nanoseconds(0), "times are positive");
        expect(o.ring_mb > 0 && (o.ring_mb & (o.ring_mb - 1)) == 0, "ring size is a power of two");
    } catch (const UsageError& error) {
        expect(*error.what(), "the error has a message");
    } catch (const Answer& answer) {
        expect(!answer.text.empty(), "the answer is not empty");
    }
}
