// SPDX-License-Identifier: Apache-2.0
#include "output/forms.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace gpusnoop {

std::span<const FlameForm> flame_forms()
{
    static constexpr FlameForm forms[] = {
        {"--svg", "write a flame graph of the stacks (-U), for a browser, to this file", svg_begin, svg_flames},
        {"--pprof", "the same as a profile, for pprof or Parca", "\x1f\x8b\x08", pprof_flames},
        {"--speedscope", "the same for speedscope.app", speedscope_begin, speedscope_flames},
    };
    return forms;
}

std::string weight_text(const Weight& weight, uint64_t value)
{
    switch (unit_of(weight)) {
    case WeightUnit::bytes:
        return human_bytes(value) + (value < 1024 ? " bytes" : "B");
    case WeightUnit::nanoseconds:
        return fmt::format("{:.6f} s", static_cast<double>(value) / 1e9);
    case WeightUnit::count:
        break;
    }
    std::string rest;
    for (; value >= 1000; value /= 1000)
        rest = fmt::format(",{:03}{}", value % 1000, rest);
    return fmt::format("{}{}", value, rest);
}

// A line for each stack, as flamegraph.pl and speedscope read them.

std::string folded_flames(const Flames& flames)
{
    std::string text;
    const auto nodes = flames.stacks.nodes();
    for (uint32_t i = 0; i < nodes.size(); i++) {
        if (!nodes[i].own)
            continue;
        bool first = true;
        const std::vector<uint32_t> frames = flames.stacks.stack_of(i);
        for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
            std::string name(flames.stacks.name(nodes[*frame]));
            std::ranges::replace(name, ';', ':');
            text += (first ? "" : ";") + name;
            first = false;
        }
        append_format(text, "{} {}\n", first ? "?" : "", nodes[i].own);
    }
    return text;
}

// https://www.speedscope.app/file-format-schema.json

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
