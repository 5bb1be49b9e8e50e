// SPDX-License-Identifier: Apache-2.0
// Looks for the interpreters of processes: a helper's work (util/helper.hpp), as it reads what processes have.
#pragma once

#include "util/helper.hpp"

namespace gpusnoop {

// A helper's whole life: answers questions (python/messages.hpp) until its owner has gone.
void serve_python_search(Helper::Task& task);

} // namespace gpusnoop
