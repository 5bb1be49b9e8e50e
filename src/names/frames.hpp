// SPDX-License-Identifier: Apache-2.0
// Symbolized call stacks: lines to print, and the same frames as separate fields for JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

// The fields of one line.
struct CodeFrame {
    std::string_view language; // "python" or "native"; empty if the line is a remark instead of a frame
    std::string function;      // empty: unknown
    std::string file;          // the library or program of native code; empty: unknown
    std::optional<int64_t> line;
};

// A stack, innermost first.
struct Frames {
    std::vector<std::string> lines;
    std::vector<CodeFrame> parts; // one per line; empty for stacks without Python

    Frames() = default;
    Frames(std::vector<std::string> all) : lines(std::move(all)) {} // NOLINT
};

} // namespace gpusnoop
