// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu.hpp"

#include "base/text.hpp"

#include <iterator>
#include <string_view>

namespace gpusnoop {
namespace {

std::string_view prefix(Gpu::By by)
{
    return by == Gpu::By::file ? "nvidia" : by == Gpu::By::ordinal ? "cuda:" : "";
}

bool is_next(const Gpu& a, const Gpu& b)
{
    return a.by == b.by && a.number + 1 == b.number && a.instance == Gpu::whole && b.instance == Gpu::whole;
}

} // namespace

std::string gpu_text(const std::set<Gpu>& gpus)
{
    std::string text;
    Gpu::By last = Gpu::By::none;
    for (auto first = gpus.begin(); first != gpus.end();) {
        if (first->by == Gpu::By::none) {
            ++first;
            continue;
        }
        auto end = std::next(first), before = first; // `before` becomes the last GPU of the range
        for (; end != gpus.end() && is_next(*before, *end); ++end)
            before = end;
        if (before->number - first->number < 2) // two adjacent GPUs are shown as "0,1", not as a range
            end = std::next(before = first);
        if (last == first->by)
            text += ',';
        else
            append_format(text, "{}{}", text.empty() ? "" : " ", prefix(first->by));
        append_format(text, "{}", first->number);
        if (before != first)
            append_format(text, "-{}", before->number);
        if (first->instance != Gpu::whole)
            append_format(text, "/gi{}", first->instance);
        if (first->compute != Gpu::whole)
            append_format(text, "/ci{}", first->compute);
        last = first->by;
        first = end;
    }
    return text;
}

} // namespace gpusnoop
