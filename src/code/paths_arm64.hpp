// SPDX-License-Identifier: Apache-2.0
// Functions of arm64 that return what a structure of their caller's leads to, as those of paths_x86_64.hpp.
#pragma once

#include "code/decoder.hpp"

#include <optional>

namespace gpusnoop::arm64 {

// As in Decoder.
std::optional<Path> path_of(const Code& code, const CodeAt& code_at);

} // namespace gpusnoop::arm64
