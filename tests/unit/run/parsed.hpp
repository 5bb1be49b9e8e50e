// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/run_tool.hpp"
#include "tools/tools.hpp"

#include "base/options.hpp"

#include <string>
#include <vector>

namespace gpusnoop {

struct Parsed {
    std::string answer;  // text to print instead of tracing, as for --help
    std::string refusal; // message of a usage error
};

inline Parsed parsed(const NamedTool& tool, std::vector<std::string> words)
{
    words.insert(words.begin(), std::string(tool.name));
    std::vector<char*> argv;
    for (std::string& word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    try {
        Options options;
        plan_run(static_cast<int>(words.size()), argv.data(), *tool.make(), options);
    } catch (const Answer& answer) {
        return {.answer = answer.text, .refusal = {}};
    } catch (const UsageError& error) {
        return {.answer = {}, .refusal = error.what()};
    }
    return {};
}

} // namespace gpusnoop
