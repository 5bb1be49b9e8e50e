// SPDX-License-Identifier: Apache-2.0
// The forms that flame graphs are written in, one row each.
#pragma once

#include "output/flames_output.hpp"
#include "output/weights.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gpusnoop {

// All of a run, as it is written.
struct Flames {
    const StackTree& stacks;
    const Weight& weight;
    std::string_view tool;
    std::string_view version;
    std::string_view command_line;
    uint64_t wall_ns = 0; // when it began
    uint64_t length_ns = 0;
    std::string_view missing; // a sentence on what is not in it; empty: nothing
};

struct FlameForm {
    std::string_view option; // "--svg"
    std::string_view help;
    std::string_view begin; // of such a file
    std::string (*write)(const Flames&);
};

std::span<const FlameForm> flame_forms(); // in files

std::string folded_flames(const Flames& flames);
std::string svg_flames(const Flames& flames);
std::string pprof_flames(const Flames& flames);
std::string speedscope_flames(const Flames& flames);

// "1,234 launches", "1.5G", "2.500000 s"
std::string weight_text(const Weight& weight, uint64_t value);

// What all svg_flames() begin with, and what all speedscope_flames() do.
inline constexpr std::string_view svg_begin = R"(<svg data-by="gpusnoop")";
inline constexpr std::string_view speedscope_begin = R"({"exporter":"gpusnoop)";

} // namespace gpusnoop
