// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpusnoop {

// To a regular file, however many times that takes. False with errno where it cannot be written.
bool write_all(int fd, std::string_view bytes);

} // namespace gpusnoop
