// SPDX-License-Identifier: Apache-2.0
#include "output/forms.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

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

} // namespace gpusnoop
