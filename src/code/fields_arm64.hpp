// SPDX-License-Identifier: Apache-2.0
// Functions of arm64 that return a number through a pointer: where it is, or which one it is.
#pragma once

#include "code/decoder.hpp"

#include <optional>

namespace gpusnoop::arm64 {

// As Decoder's returned_field() and returned_constant().
std::optional<uint32_t> field_of(const Code& code);
std::optional<uint32_t> constant_of(const Code& code);

} // namespace gpusnoop::arm64
