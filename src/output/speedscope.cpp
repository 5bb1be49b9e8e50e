// SPDX-License-Identifier: Apache-2.0
// https://www.speedscope.app/file-format-schema.json
#include "base/append_format.hpp"
#include "base/text.hpp"
#include "output/forms.hpp"

#include <fmt/format.h>
#include <vector>

namespace gpusnoop {

std::string speedscope_flames(const Flames& flames)
{
    constexpr std::string_view units[] = {"none", "bytes", "nanoseconds"};
    const StackTree& stacks = flames.stacks;
    std::string text =
        fmt::format(R"({} {}","$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[)",
                    speedscope_begin, flames.version);
    for (uint32_t name = 1; name < stacks.names(); name++) {
        text += name == 1 ? R"({"name":)" : R"(,{"name":)";
        append_json_string(text, stacks.name(name));
        text += '}';
    }
    std::string samples, weights;
    uint64_t sum = 0;
    const auto nodes = stacks.nodes();
    for (uint32_t i = 1; i < nodes.size(); i++) {
        if (!nodes[i].own)
            continue;
        samples += samples.empty() ? "[" : ",[";
        const std::vector<uint32_t> frames = stacks.stack_of(i);
        for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
            append_format(samples, "{}{}", samples.back() == '[' ? "" : ",", nodes[*frame].name - 1);
        samples += ']';
        append_format(weights, "{}{}", weights.empty() ? "" : ",", nodes[i].own);
        sum += nodes[i].own;
    }
    std::string name = fmt::format("{}: {}", flames.tool, flames.weight.text);
    if (!flames.missing.empty())
        name += fmt::format(" ({})", flames.missing);
    text += R"(]},"profiles":[{"type":"sampled","name":)";
    append_json_string(text, name);
    append_format(text, R"(,"unit":"{}","startValue":0,"endValue":{},"samples":[{}],"weights":[{}]}}],"name":)",
                  units[static_cast<size_t>(unit_of(flames.weight))], sum, samples, weights);
    append_json_string(text, flames.command_line);
    return text += "}\n";
}

} // namespace gpusnoop
