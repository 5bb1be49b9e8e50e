// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/fd.hpp"

#include <optional>
#include <string>

namespace gpusnoop {

// What is left of a file whose length others decide: where that is more than `max` bytes, only the beginning, which is
// longer than `max`, too. nullopt where it cannot be read.
std::optional<std::string> read_text(const Fd& file, size_t max);
// flags: of open(), besides reading.
std::optional<std::string> read_text(const std::string& path, size_t max, int flags = 0);

} // namespace gpusnoop
