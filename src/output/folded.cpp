// SPDX-License-Identifier: Apache-2.0
// A line for each stack, as flamegraph.pl and speedscope read them.
#include "output/forms.hpp"

#include "base/append_format.hpp"

#include <algorithm>
#include <vector>

namespace gpusnoop {

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

} // namespace gpusnoop
