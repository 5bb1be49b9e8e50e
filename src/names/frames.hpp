// SPDX-License-Identifier: Apache-2.0
// Symbolized call stacks, as lines to print and as separate fields for JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

// The fields of one printed line of a stack.
struct CodeFrame {
    std::string_view language; // "python" or "native"; empty if the line is a remark instead of a frame
    std::string function;      // empty: unknown
    std::string file;          // for native code: the library or program; empty: unknown
    std::optional<int64_t> line;
};

// A stack, innermost first.
struct Frames {
    std::vector<std::string> lines;
    std::vector<CodeFrame> parts; // one per element of lines; empty if the stack has no Python frames

    Frames() = default;
    Frames(std::vector<std::string> all) : lines(std::move(all)) {} // NOLINT
};

} // namespace gpusnoop
