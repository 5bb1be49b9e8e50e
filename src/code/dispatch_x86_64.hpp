// SPDX-License-Identifier: Apache-2.0
// Functions that only look another one up in a table: those that libamdhip64 exports from ROCm 6.1 on.
#pragma once

#include "code/decoder.hpp"

#include <optional>
#include <vector>

namespace gpusnoop::x86_64 {

// Functions that return what a structure of their caller's leads to: where that is, their code says.

// As in Decoder.
std::optional<Path> path_of(const Code& code, const CodeAt& code_at);

// As in Decoder.
std::optional<Dispatch> dispatch_of(const Code& code);
std::vector<Filled> filled_by(const Code& code);

} // namespace gpusnoop::x86_64
