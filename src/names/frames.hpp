// SPDX-License-Identifier: Apache-2.0
// Call stacks with names, as lines for people and as parts for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

// A frame of a stack for programs to read: what its line says, taken apart.
struct CodeFrame {
    std::string_view language; // "python", "native"; empty: the line is no frame, but says something of the stack
    std::string function;      // empty: not known
    std::string file;          // the same; of native code the name of the library or program
    std::optional<int64_t> line;
};

// A stack, innermost first.
struct Frames {
    std::vector<std::string> lines;
    std::vector<CodeFrame> parts; // the same; none where the lines say it all

    Frames() = default;
    Frames(std::vector<std::string> all) : lines(std::move(all)) {} // NOLINT
};

} // namespace gpusnoop
