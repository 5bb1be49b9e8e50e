// SPDX-License-Identifier: Apache-2.0
// What must hold before anything is loaded, each with its own sentence.
#pragma once

namespace gpusnoop {

// Throws Error: not root, kernel locked down, no BTF, inside a pid namespace.
void preflight();

} // namespace gpusnoop
