// SPDX-License-Identifier: Apache-2.0
// What a program finds when it starts: standard streams, and how many files it may open.
#pragma once

#include <cstddef>

struct bpf_object;

namespace gpusnoop {

// A standard stream that is closed stays so: nothing of our own may take its place, or output would go there.
void hold_closed_streams();

// As many as may be. Throws Error where no tool can do with them.
void raise_descriptor_limit();

// Between open and load. Throws Error where there are fewer than the object and so many watched processes take.
void check_descriptors(const bpf_object* object, size_t processes);

} // namespace gpusnoop
