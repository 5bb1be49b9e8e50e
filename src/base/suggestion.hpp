// SPDX-License-Identifier: Apache-2.0
// What somebody may have meant who mistyped a word.
#pragma once

#include <string>
#include <string_view>

namespace gpusnoop {

// "; did you mean 'kernel'?", for the end of a sentence; empty where no known word is near. known: "pid, comm, thread".
// Capitals do not matter.
std::string suggestion(std::string_view typed, std::string_view known);

} // namespace gpusnoop
