// SPDX-License-Identifier: Apache-2.0
// The programs on functions of libraries, verified on all CPUs at once. The verifier takes most of the time of a start,
// and libbpf has it look at one program after the other: so libbpf loads one that does nothing in the place of each,
// and those that are meant follow together, into the same descriptors.
#pragma once

#include <functional>

namespace gpusnoop {

// Once, before a BPF object is opened. confidential: see attach/user_reads.hpp.
void let_programs_be_prepared(bool confidential);

// load: has libbpf load an object, on this thread. Its error, or that of a program: nobody says then which it is, and
// why, as libbpf does where it loads the programs itself.
int load_together(const std::function<int()>& load);

// The same, or as libbpf does it. Throws LoadError.
void load_into_kernel(const std::function<int()>& load, bool together);

} // namespace gpusnoop
