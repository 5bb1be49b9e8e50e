// SPDX-License-Identifier: Apache-2.0
// What must hold before anything is loaded, each with its own sentence.
#pragma once

namespace gpusnoop {

// Throws Error: not root, kernel too old or without BTF, inside a pid namespace. confidential: see
// attach/user_reads.hpp.
void preflight(bool confidential);

// No run needs more capabilities than some: the others are given up, for it reads what it cannot trust.
void give_up_capabilities();

} // namespace gpusnoop
