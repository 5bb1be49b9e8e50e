// SPDX-License-Identifier: Apache-2.0
// Sends a signal to the process of a row, never to another process that has reused its pid.
#pragma once

#include "screen/snapshot.hpp"

#include <string>

namespace gpusnoop::cudatop {

// Returns the result, as a sentence. name: the process as the user saw it.
std::string send_signal(const RowProcess& process, const std::string& name, int number);

} // namespace gpusnoop::cudatop
