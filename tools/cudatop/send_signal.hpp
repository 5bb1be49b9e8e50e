// SPDX-License-Identifier: Apache-2.0
// A signal to the process of a row, and to no other.
#pragma once

#include "screen/snapshot.hpp"

#include <string>

namespace gpusnoop::cudatop {

// What came of it, as a sentence. name: what the user was asked about.
std::string send_signal(const RowProcess& process, const std::string& name, int number);

} // namespace gpusnoop::cudatop
