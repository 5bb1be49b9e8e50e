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

// Functions of arm64 that return a number through a pointer: where it is, or which one it is.

// As Decoder's returned_field() and returned_constant().
std::optional<uint32_t> field_of(const Code& code);
std::optional<uint32_t> constant_of(const Code& code);

} // namespace gpusnoop::arm64
