// SPDX-License-Identifier: Apache-2.0
// Sends a signal to the process of a row, never to another process that has reused its pid.
#pragma once

#include "screen/snapshot.hpp"

#include <string>

namespace gpusnoop::cudatop {

// Returns the result as a sentence. name: name of the process as shown to the user.
std::string send_signal(const RowProcess& process, const std::string& name, int number);

} // namespace gpusnoop::cudatop
