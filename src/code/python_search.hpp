// SPDX-License-Identifier: Apache-2.0
// Looks for the interpreters of processes: a helper's work (reader/helper.hpp), as it reads what processes have.
#pragma once

#include "reader/helper.hpp"

namespace gpusnoop {

// A helper's whole life: answers questions (code/python_messages.hpp) until its owner has gone.
void serve_python_search(Helper::Task& task);

} // namespace gpusnoop
