// SPDX-License-Identifier: Apache-2.0
// Functions that return what a structure of their caller's leads to: where that is, their code says.
#pragma once

#include "code/decoder.hpp"

#include <optional>

namespace gpusnoop::x86_64 {

// As in Decoder.
std::optional<Path> path_of(const Code& code, const CodeAt& code_at);

} // namespace gpusnoop::x86_64
