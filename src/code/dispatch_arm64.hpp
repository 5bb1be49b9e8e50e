// SPDX-License-Identifier: Apache-2.0
// Functions of arm64 that only look another one up in a table, as those of dispatch_x86_64.hpp.
#pragma once

#include "code/decoder.hpp"

#include <optional>
#include <vector>

namespace gpusnoop::arm64 {

// As in Decoder.
std::optional<Dispatch> dispatch_of(const Code& code);
std::vector<Filled> filled_by(const Code& code);

} // namespace gpusnoop::arm64
